// An engine, its masters and its callers in one thread and in virtual time: nothing here waits, and
// the same test sees the same moments each time.

#pragma once

#include "support/engine_host.hpp"
#include "support/test.hpp"
#include "virtual_master.hpp"

namespace unit {

using redlock::acquire_options;
using redlock::errc;
using redlock::loss_reason;
using redlock::release_result;
using redlock::vote;
using redlock::test::settings_for;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// The same in the guarded protocol.
redlock::core::settings guarded(redlock::core::settings rules);
inline redlock::core::settings guarded_settings_for(std::size_t masters) {
    return guarded(settings_for(masters));
}

/// `ttl` with its drift taken off, as the tests' settings have it: written out once more, from the
/// specification.
constexpr nanoseconds usable(milliseconds ttl) {
    return nanoseconds(ttl) - nanoseconds(ttl) / 100 - milliseconds(2);
}

/// What became of an acquire.
struct answer {
    time_point at = {};
    bool won = false;
    std::optional<errc> why = {}; // of one that was not won; empty: cancelled
    redlock::core::handle<redlock::core::claim> lease = {};
    std::string key = {};
    std::string token = {};
    std::vector<std::uint32_t> slots = {};
    time_point deadline = {};
    time_point held_until = {};
    unsigned attempts = 0;
    std::vector<vote> votes = {};
    redlock::core::ballots ballots = {};
};

/// Of several extensions; empty: extended.
using errors = std::vector<std::optional<errc>>;

class virtual_quorum : private redlock::test::engine_host {
public:
    explicit virtual_quorum(std::size_t masters) : virtual_quorum(settings_for(masters)) {}
    explicit virtual_quorum(redlock::core::settings rules);

    /// \name Time
    /// \{
    time_point now() const noexcept override { return now_; }
    /// Everything that happens until `until`, that moment included.
    void run_until(time_point until);
    void run_for(nanoseconds span) { run_until(now_ + span); }
    /// Until `done`; false if that took longer than `limit`.
    bool run_while_not(const std::function<bool()>& done, nanoseconds limit = seconds(100));
    /// `f` happens at that moment, before the timers of that moment.
    void at(time_point when, std::function<void()> f) { queue_.emplace(when, std::move(f)); }
    /// \}

    /// \name Callers
    /// Here and below, what is called with `then` lets that time pass.
    /// \{
    /// Starts the engine and waits until every master has been introduced.
    void start();
    void begin() { engine.start(now_); }
    std::uint64_t
    acquire(const acquire_options& options, std::string_view resource = "r", nanoseconds then = {});
    std::uint64_t acquire(const acquire_options& options, nanoseconds then) {
        return acquire(options, "r", then);
    }
    /// Attaches to the lock with that token.
    std::uint64_t attach(const acquire_options& options, std::string_view token) {
        return ask({.resource = "r", .options = options, .token = token, .attaches = true});
    }
    /// Of the pool `r`.
    std::uint64_t
    acquire_slot(const acquire_options& options, std::uint32_t slots, nanoseconds then = {}) {
        return passing(then, ask({.resource = "r", .options = options, .slots = slots}));
    }
    std::uint64_t acquire_form(
        redlock::core::lock_form form, const acquire_options& options, std::string_view resource);
    /// Acquires, and waits for the answer.
    answer acquire_now(const acquire_options& options, std::string_view resource = "r");
    answer acquire_now(const acquire_options& options, nanoseconds then) {
        return passing(then, acquire_now(options));
    }
    /// The same of one that must be granted.
    answer take(const acquire_options& options, std::string_view resource = "r");
    answer take(const acquire_options& options, nanoseconds then) {
        return passing(then, take(options));
    }
    answer acquire_slot_now(const acquire_options& options, std::uint32_t slots) {
        return awaited(acquire_slot(options, slots));
    }
    void cancel(std::uint64_t cookie, nanoseconds then = {}) {
        engine.cancel(operations_[cookie], now_);
        pass(then);
    }
    bool has_sent_nothing(std::uint64_t cookie) {
        return engine.has_sent_nothing(operations_[cookie]);
    }
    void extend(const answer& lease, milliseconds ttl, nanoseconds then = {}) {
        engine.extend(lease.lease, ttl, now_);
        pass(then);
    }
    /// Extends, lets 10 ms pass, and returns what that one extension ended with.
    std::optional<errc> extend_now(const answer& lease, milliseconds ttl);
    void release(const answer& lease, nanoseconds then = {}) {
        engine.release(lease.lease, now_);
        pass(then);
    }
    /// The same of a release.
    std::optional<release_result> release_now(const answer& lease);
    void close(nanoseconds then = {}) {
        engine.close(now_);
        pass(then);
    }
    void listen(nanoseconds then) {
        engine.listen("r", now_);
        pass(then);
    }
    void unlisten(nanoseconds then) {
        engine.unlisten("r", now_);
        pass(then);
    }
    /// Null: none so far.
    const answer* answer_to(std::uint64_t cookie) const;
    /// Waits for one that must come.
    const answer& awaited(std::uint64_t cookie);
    /// Requires that there is one.
    const answer& answered(std::uint64_t cookie) const { return answers_.at(cookie); }
    /// Why it was lost, and when; empty: it was not.
    std::optional<loss_reason> lost_by(const answer& lease) const { return of(lease).lost_by; }
    std::optional<time_point> lost_at(const answer& lease) const { return of(lease).lost_at; }
    /// Lets time pass until that moment: whether it is lost then, and not a nanosecond before.
    bool is_lost_at(const answer& lease, time_point when);
    /// What its last release ended with; empty: none has.
    std::optional<release_result> removed_as(const answer& lease) const {
        return of(lease).removed_as;
    }
    /// The time that the first master took for that.
    nanoseconds release_took(const answer& lease) const { return of(lease).release_took; }
    /// What its extensions ended with.
    const errors& extensions_of(const answer& lease) const { return of(lease).extensions; }
    /// The moment to which its deadline was moved last.
    time_point deadline_of(const answer& lease) const { return of(lease).deadline; }
    /// \}

    /// \name Trouble
    /// \{
    void disconnect(std::size_t link, nanoseconds then = {});
    /// The connection breaks, and another one is refused.
    void cut_off(std::size_t link, nanoseconds then = {}) {
        paths[link].reachable = false;
        disconnect(link, then);
    }
    /// A message on the push connection to that master.
    void push(std::size_t master, std::string_view channel, std::string_view message);
    /// The same from all masters.
    void push_everywhere(std::string_view channel, std::string_view message);
    /// Somebody else has that key on all masters, for good.
    void hold_everywhere(const std::string& key = "p:{r}");
    void free_everywhere(const std::string& key = "p:{r}");
    /// From now on all connections are like that.
    void delay_replies(nanoseconds by) {
        for (path& way : paths) {
            way.back = by;
        }
    }
    void hang() {
        for (path& way : paths) {
            way.hung = true;
        }
    }
    /// Reads and answers what has piled up.
    void resume(std::size_t link, nanoseconds then = {});
    /// Dies, and is started again with empty memory under another run id.
    void restart(std::size_t master, const std::string& run_id, nanoseconds then = {});
    /// All masters have records by which they have lost nothing.
    void put_records();
    /// \}

    /// `f` of each master.
    template <typename F>
    void each(F f) {
        for (virtual_master& one : masters) {
            std::invoke(f, one);
        }
    }
    /// Whether a live key of that resource is anywhere.
    bool has_key(std::string_view resource = "r");
    /// How many such commands the masters have executed, all together.
    std::size_t asked(std::string_view what = "SET") const;
    /// How many lines of the log contain that.
    std::size_t logged(std::string_view part) const;
    bool connected(std::size_t link) const { return links_[link].up; }
    std::string key(std::string_view resource = "r") const {
        return "p:{" + std::string(resource) + "}";
    }

    /// Whether nothing but health checks is left to do: no operation, no claim, no timer. Looks
    /// after the answers have come. Needs a `health_check_interval` beyond every lease.
    bool idle();

    /// How the network treats one master.
    struct path {
        nanoseconds there = milliseconds(0); // a command travels
        nanoseconds back = milliseconds(1);  // its reply travels
        bool reachable = true;               // connections are accepted
        bool takes_bytes = true;             // the socket accepts writes
        // The rest is the harness's.
        bool hung = false;
        bool left_over = false; // bytes wait for the socket
        time_point last_reply{};
        std::string inbox;
    };

    std::vector<virtual_master> masters;
    std::vector<path> paths;           // of the command connections, then of the push connections
    std::vector<std::string> tokens;   // in the order of the attempts
    std::vector<std::uint64_t> fences; // the fencing tokens of what was acquired; 0: without
    std::vector<std::string> log_lines;
    std::vector<std::string> heard_of; // the keys whose release it was notified of
    std::vector<std::pair<std::string, std::size_t>> contentions; // that it has warned of
    std::size_t renewals = 0;                                     // that were begun
    std::vector<redlock::lock_status> statuses;
    std::vector<redlock::lock_status> pools;
    unsigned closings = 0;
    bool usual_margins = false; // else a lease without a `stop_margin` of its own has none

protected:
    // Without a time nothing happens: what was asked for has not left yet.
    void pass(nanoseconds then) {
        if (then != nanoseconds(0)) {
            run_for(then);
        }
    }
    template <typename Result>
    Result passing(nanoseconds then, Result result) {
        pass(then);
        return result;
    }

private:
    void open(std::size_t link) override;
    void close(std::size_t link) override;
    void token_drawn(std::string hex) override { tokens.push_back(std::move(hex)); }
    bool logs(redlock::log_level) const override { return true; }
    void log(redlock::log_level, std::string_view line) override { log_lines.emplace_back(line); }
    void
    acquired(const redlock::core::acquire_call& done, const redlock::core::claim& lease) override;
    void not_acquired(const redlock::core::acquire_call& done) override;
    void lease_changed(const redlock::core::claim& lease) override;
    void lease_lost(const redlock::core::claim& lease, loss_reason reason) override;
    void held_long(const redlock::core::claim&) override {}
    void contention(std::string_view key, std::size_t waiting) override {
        contentions.emplace_back(key, waiting);
    }
    void heard(std::string_view key) override { heard_of.emplace_back(key); }
    void renewing(const redlock::core::claim&) override { ++renewals; }
    void renewed(const redlock::core::claim&, std::optional<errc>) override {}
    void extended(const redlock::core::claim& lease, std::optional<errc> error) override;
    void removed(const redlock::core::claim& lease, release_result result) override;
    void queried(std::uint64_t, redlock::lock_status&& found) override {
        (found.slots.empty() ? statuses : pools).push_back(std::move(found));
    }
    void closed() override { ++closings; }

    bool step(time_point until);
    void flush();
    void read(std::size_t link);
    void send_reply(std::size_t link, const std::string& bytes);
    /// `f` at that moment, unless the connection breaks before.
    void on_path(std::size_t link, time_point when, std::function<void()> f);

    /// What became of a lease that was granted.
    struct history {
        std::optional<time_point> lost_at;
        std::optional<loss_reason> lost_by;
        std::optional<release_result> removed_as;
        nanoseconds release_took{};
        bool handed_off = false; // since it was removed
        errors extensions;
        time_point deadline{};
    };
    using claim_handle = redlock::core::handle<redlock::core::claim>;
    history& of(claim_handle name) { return histories_[{name.index, name.generation}]; }
    const history& of(const answer& lease) const;
    std::uint64_t ask(redlock::core::acquire_request wanted);
    void answered(const redlock::core::acquire_call& done, answer what);

    std::multimap<time_point, std::function<void()>> queue_;
    std::map<std::uint64_t, redlock::core::handle<redlock::core::acquire_call>> operations_;
    std::map<std::uint64_t, answer> answers_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, history> histories_;
    std::uint64_t next_cookie_ = 1;
    redlock::test::connection_id connections_ = 0; // so far
    unsigned steps_at_once_ = 0;
    time_point now_ = time_point(seconds(1'000'000));

public:
    redlock::core::engine& engine; // last: it asks for random bytes as it is made
};

/// It runs, and every master has been introduced.
struct started_quorum : virtual_quorum {
    template <typename Rules>
    explicit started_quorum(Rules&& rules) : virtual_quorum(std::forward<Rules>(rules)) {
        start();
    }
};

/// A lock that is renewed by nobody, for 10 s.
inline acquire_options patient(redlock::wait_for wait = redlock::wait_for::forever()) {
    return {.ttl = seconds(10), .wait = wait, .renew = false};
}
/// The same without waiting.
inline acquire_options once() {
    return patient(redlock::wait_for::none());
}
/// The same as `once`, renewed.
inline acquire_options renewed() {
    return {.ttl = seconds(10), .wait = redlock::wait_for::none()};
}
/// The same, with a fencing token.
inline acquire_options fenced(acquire_options options = once()) {
    options.fencing = true;
    return options;
}

/// It has this lock.
struct quorum_with_lock : started_quorum {
    template <typename Rules>
    explicit quorum_with_lock(
        Rules&& rules, const acquire_options& options = once(), nanoseconds then = {})
        : started_quorum(std::forward<Rules>(rules)),
          got(acquire_now(options, then)) {}

    const answer got;
};

} // namespace unit
