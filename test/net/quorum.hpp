// Fake masters, an io_context that the test's thread runs, and a manager on it.
//
// Long time-outs by default: a test in which silence is the subject sets them shorter. What a test
// waits for is an event (`run_until`, `wait`), never a duration.
#pragma once

#include "outcome.hpp"
#include "support/fake_master.hpp"
#include "support/run.hpp"
#include "support/test.hpp"

#include <redlock/redlock.hpp>

#include <deque>

namespace redlock::test {

namespace asio = boost::asio;

// One attempt, and no renewal.
acquire_options once(std::chrono::milliseconds ttl = std::chrono::seconds(20));
// As many attempts as it takes, and no renewal.
acquire_options patiently(std::chrono::milliseconds ttl = std::chrono::seconds(20));

class quorum {
public:
    using tuning = std::function<void(config&)>;

    // The masters require the password of the configuration.
    explicit quorum(std::size_t masters = 3, const tuning& tune = {});

    // Runs the manager until this number of masters is admitted: all by default.
    void start();
    void start(std::size_t admitted);
    // Closes it; `running` has ended afterwards.
    void close();

    template <typename Predicate>
    void run_until(Predicate predicate) {
        redlock::test::run_until(io, std::move(predicate));
    }
    template <typename Outcome>
    Outcome& wait(Outcome& one) {
        run_until([&one] { return one.done(); });
        return one;
    }
    // Does what is ready to be done.
    void poll();

    // Begins something; the outcome lives as long as the quorum.
    template <typename Outcome, typename Begin>
    Outcome& begin(Begin how) {
        const auto made = std::make_shared<Outcome>();
        kept_.push_back(made);
        how(with_diagnostics(made->why(), made->handler()));
        return *made;
    }
    acquisition& begin_acquire(const target& what, const acquire_options& options);
    release_outcome& begin_release(lock& held);
    extend_outcome& begin_extend(lock& held, std::chrono::milliseconds ttl);
    loss_outcome& begin_wait_lost(lock& held);
    query_outcome& begin_query(const std::string& resource);
    nothing& begin_ready();
    nothing& begin_run();
    nothing& begin_close();

    // Begins something and waits for the end of it.
    acquisition& acquire(const target& what, const acquire_options& options = once()) {
        return wait(begin_acquire(what, options));
    }
    release_outcome& release(lock& held) { return wait(begin_release(held)); }
    extend_outcome& extend(lock& held, std::chrono::milliseconds ttl) {
        return wait(begin_extend(held, ttl));
    }
    query_outcome& query(const std::string& resource) { return wait(begin_query(resource)); }
    // For tests whose subject comes after it; throws if it fails.
    lock acquired(const std::string& resource, const acquire_options& options = once());
    // The same, and each master has the key.
    lock acquired_everywhere(const std::string& resource, const acquire_options& options = once()) {
        lock held = acquired(resource, options);
        run_until([this] { return keys() == masters.size(); });
        return held;
    }
    // An acquire of which each master has received the SET.
    acquisition& asked_for(const std::string& resource) {
        acquisition& begun = begin_acquire(resource, patiently());
        run_until([this] { return count("SET") == masters.size(); });
        return begun;
    }
    // A majority of three masters has that lock for another owner.
    void hold_elsewhere(const std::string& resource) {
        masters[0].set_key("redlock:{" + resource + "}", "somebody's");
        masters[1].set_key("redlock:{" + resource + "}", "somebody's");
    }

    // The same for all masters.
    template <typename Function, typename... Arguments>
    void each(Function what, const Arguments&... arguments) {
        for (fake_master& master : masters) {
            (master.*what)(arguments...);
        }
    }
    void when(
        const std::string& command,
        const fake_action& action,
        std::size_t times = fake_master::for_ever) {
        each(&fake_master::when, command, action, times);
    }

    master_health health_of(std::size_t master) const {
        return manager->get_health().masters.at(master);
    }
    std::size_t admitted() const { return manager->get_health().admitted; }
    std::size_t keys() const;                         // on all masters together
    std::size_t count(const std::string& name) const; // commands, on all masters together
    std::vector<std::string> log() const;
    // Everything the library has said to people: log, health, and these diagnostics.
    std::string all_words(const diagnostics& why) const;

private:
    struct lines {
        std::mutex guard;
        std::vector<std::string> text;
    };
    std::vector<std::shared_ptr<void>> kept_; // destroyed last: handlers refer to them
    std::shared_ptr<lines> log_ = std::make_shared<lines>();

public:
    std::deque<fake_master> masters;
    config settings;
    std::shared_ptr<asio::io_context> context; // to be destroyed early where that matters
    asio::io_context& io;
    std::optional<lock_manager> manager;
    nothing* running = nullptr;
};

// All its masters are admitted.
struct started_quorum : quorum {
    explicit started_quorum(std::size_t masters = 3, const tuning& tune = {})
        : quorum(masters, tune) {
        start();
    }
};

} // namespace redlock::test
