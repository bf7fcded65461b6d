// What the tests of slot pools have in common: real masters, and searches that are watched.
#pragma once

#include "guarded_quorum.hpp"
#include "quorum_fixture.hpp"

#include <redlock/lock_manager.hpp>

namespace redlock::test {

/// A pool as one process sees it.
struct named_pool {
    lock_manager& manager;
    std::string name;
    std::size_t size;
};

inline acquisition_ptr begin(const named_pool& pool, acquire_options options = once()) {
    return begun([&](auto handler) {
        pool.manager.async_acquire(
            redlock::slots(pool.name, pool.size), options, std::move(handler));
    });
}

struct pool_site : quorum_fixture {
    static constexpr milliseconds long_wait = std::chrono::hours(24);

    /// A waiter asks again only after a notification, or when a lease that the masters reported has
    /// ended.
    static void patient(config& settings) {
        guarded(settings);
        settings.retry_delay_min = settings.retry_delay_max = std::chrono::hours(1);
        settings.local_handoff_time = std::chrono::hours(1);
    }
    static void patient_and_plain(config& settings) {
        patient(settings);
        settings.protocol = protocol::plain;
    }
    /// What a search costs a master.
    static std::uint64_t questions(const master_process& master) {
        return calls_of(master, "eval") + calls_of(master, "evalsha") + calls_of(master, "mget")
               + calls_of(master, "set");
    }
    static std::string subscribers(const master_process& master, const std::string& pool) {
        const std::string said =
            master.command({"PUBSUB", "NUMSUB", "redlock:{" + pool + "}:slot:free"});
        return said.substr(said.find_last_not_of("0123456789") + 1);
    }

    explicit pool_site(const std::function<void(config&)>& change = guarded)
        : quorum_fixture(3, change) {}

    acquisition_ptr finish(const acquisition_ptr& begun) { return me.finish(begun); }
    acquisition_ptr acquire(const named_pool& pool, acquire_options options = once()) {
        return finish(begin(pool, options));
    }
    redlock::lock take(const named_pool& pool, acquire_options options = once()) {
        return granted(acquire(pool, options));
    }
    release_result release(redlock::lock& held) { return me.release(held); }
    lock_status status(const named_pool& pool) {
        std::optional<lock_status> result;
        pool.manager.async_query(
            redlock::slots(pool.name, pool.size), [&](error_code error, lock_status found) {
                CHECK(!error);
                result = std::move(found);
            });
        run_until(io, [&] { return result.has_value(); });
        return *result;
    }
    bool heard_by(const std::string& pool, const std::string& count) {
        return eventually([&] {
            return std::all_of(masters.begin(), masters.end(), [&](const master_process& one) {
                return subscribers(one, pool) == count;
            });
        });
    }
    bool no_slot_left() {
        return eventually([this] { return masters.total_keys("*:slot:?") == 0; });
    }
};

} // namespace redlock::test
