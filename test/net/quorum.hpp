// Fake masters, an io_context that the test's thread runs, and a manager on it.
//
// Long time-outs by default: a test in which silence is the subject sets them shorter. What a test
// waits for is an event (`run_until`, `wait`), never a duration.
#pragma once

#include "support/fake_master.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/test.hpp"

#include <redlock/redlock.hpp>

#include <deque>

namespace redlock::test {

namespace asio = boost::asio;

// One attempt, and no renewal.
inline acquire_options once(std::chrono::milliseconds ttl = 20s) {
    return {.ttl = ttl, .wait = wait_for::none(), .renew = false};
}
// As many attempts as it takes, and no renewal.
inline acquire_options patiently(std::chrono::milliseconds ttl = 20s) {
    return {.ttl = ttl, .wait = wait_for::forever(), .renew = false};
}

class quorum {
public:
    using tuning = std::function<void(config&)>;

    // The masters require the password of the configuration.
    explicit quorum(std::size_t size = 3, const tuning& tune = {})
        : masters(size),
          context(std::make_shared<asio::io_context>()),
          io(*context) {
        for (const fake_master& master : masters) {
            settings.masters.emplace_back(master.url());
        }
        settings.protocol = protocol::plain;
        settings.connect_timeout = 10s;
        settings.master_timeout = 2s;
        settings.reconnect_delay_max = 50ms;
        settings.health_check_interval = 1h; // no command that a test does not expect
        settings.retry_delay_min = 2ms;
        settings.retry_delay_max = 20ms;
        settings.release_notifications = false; // nor a connection
        settings.log.level = log_level::debug;
        settings.log.write = [log = log_](log_level, std::string_view line) {
            const std::lock_guard lock(log->guard);
            log->text.emplace_back(line);
        };
        if (tune) {
            tune(settings);
        }
        each(&fake_master::require, settings.password);
        manager.emplace(io.get_executor(), settings);
    }

    // Runs the manager until this number of masters is admitted: all by default.
    void start() { start(masters.size()); }
    void start(std::size_t wanted) {
        running = &begin_run();
        run_until([this, wanted] { return admitted() >= wanted; });
    }
    // Closes it; `running` has ended afterwards.
    void close() {
        wait(begin_close());
        if (running != nullptr) {
            wait(*running);
        }
    }

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
    void poll() {
        io.restart();
        io.poll();
    }

    // Begins something; the outcome lives as long as the quorum.
    template <typename Outcome, typename Begin>
    Outcome& begin(Begin how) {
        const auto made = std::make_shared<Outcome>();
        kept_.push_back(made);
        how(with_diagnostics(made->why(), made->handler()));
        return *made;
    }
    acquisition& begin_acquire(const target& what, const acquire_options& options) {
        return begin<acquisition>(
            [&](auto token) { manager->async_acquire(what, options, std::move(token)); });
    }
    release_outcome& begin_release(lock& held) {
        return begin<release_outcome>([&](auto token) { held.async_release(std::move(token)); });
    }
    extend_outcome& begin_extend(lock& held, std::chrono::milliseconds ttl) {
        return begin<extend_outcome>([&](auto token) { held.async_extend(ttl, std::move(token)); });
    }
    loss_outcome& begin_wait_lost(lock& held) {
        return begin<loss_outcome>([&](auto token) { held.async_wait_lost(std::move(token)); });
    }
    query_outcome& begin_query(const std::string& resource) {
        return begin<query_outcome>(
            [&](auto token) { manager->async_query(resource, std::move(token)); });
    }
    nothing& begin_ready() {
        return begin<nothing>([&](auto token) { manager->async_ready(std::move(token)); });
    }
    nothing& begin_run() {
        return begin<nothing>([&](auto token) { manager->async_run(std::move(token)); });
    }
    nothing& begin_close() {
        return begin<nothing>([&](auto token) { manager->async_close(std::move(token)); });
    }

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
    lock acquired(const std::string& resource, const acquire_options& options = once()) {
        acquisition& one = acquire(resource, options);
        if (one.error()) {
            throw std::runtime_error("not acquired: " + to_string(one.why()));
        }
        return std::move(one.value());
    }
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
    // On all masters together.
    std::size_t keys() const {
        std::size_t found = 0;
        for (const fake_master& master : masters) {
            found += master.keys().size();
        }
        return found;
    }
    // Commands, on all masters together.
    std::size_t count(const std::string& name) const {
        std::size_t found = 0;
        for (const fake_master& master : masters) {
            found += master.count(name);
        }
        return found;
    }
    std::vector<std::string> log() const {
        const std::lock_guard lock(log_->guard);
        return log_->text;
    }
    // Everything the library has said to people: log, health, and these diagnostics.
    std::string all_words(const diagnostics& why) const {
        std::string words = why.message + "\n" + to_string(why) + "\n";
        for (const master_vote& vote : why.votes) {
            words += vote.endpoint + " " + vote.text + "\n";
        }
        const health state = manager->get_health();
        words += to_string(state) + "\n";
        for (const master_health& master : state.masters) {
            words += master.endpoint + " " + master.text + "\n";
        }
        for (const std::string& line : log()) {
            words += line + "\n";
        }
        return words;
    }

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
