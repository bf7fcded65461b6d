// What the tests of slot pools have in common: real masters, and searches that are watched.
#pragma once

#include "guarded_quorum.hpp"
#include "quorum_fixture.hpp"

#include <redlock/lock_manager.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace redlock::test {

/// A pool by its name and size, as one process sees it.
class slot_pool {
public:
    slot_pool(lock_manager& manager, std::string name, std::size_t size)
        : manager_(&manager),
          name_(std::move(name)),
          size_(size) {}

    std::size_t size() const noexcept { return size_; }
    template <typename Token>
    auto async_acquire(acquire_options options, Token&& token) {
        return manager_->async_acquire_slot(name_, size_, options, std::forward<Token>(token));
    }
    template <typename Token>
    auto async_acquire_many(std::size_t count, acquire_options options, Token&& token) {
        return manager_->async_acquire_slots(
            name_, size_, count, options, std::forward<Token>(token));
    }
    template <typename Token>
    auto async_status(Token&& token) {
        return manager_->async_query_slots(name_, size_, std::forward<Token>(token));
    }

private:
    lock_manager* manager_;
    std::string name_;
    std::size_t size_;
};

struct taking {
    bool done = false;
    error_code error;
    redlock::lock lock;
    diagnostics why;
    asio::cancellation_signal cancel;

    std::string explained() const { return error.message() + " | " + to_string(why); }
};
using taking_ptr = std::shared_ptr<taking>;

inline taking_ptr begin(slot_pool& pool, acquire_options options = once()) {
    const auto result = std::make_shared<taking>();
    pool.async_acquire(
        options,
        with_diagnostics(
            result->why,
            asio::bind_cancellation_slot(
                result->cancel.slot(), [result](error_code error, redlock::lock held) {
                    result->error = error;
                    result->lock = std::move(held);
                    result->done = true;
                })));
    return result;
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

    taking_ptr finish(const taking_ptr& begun) {
        run_until(io, [&] { return begun->done; });
        return begun;
    }
    taking_ptr acquire(slot_pool& pool, acquire_options options = once()) {
        return finish(begin(pool, options));
    }
    redlock::lock take(slot_pool& pool, acquire_options options = once()) {
        const taking_ptr result = acquire(pool, options);
        INFO(result->explained());
        REQUIRE(!result->error);
        return std::move(result->lock);
    }
    release_result release(redlock::lock& held) {
        std::optional<release_result> result;
        held.async_release([&](error_code, release_result what) { result = what; });
        run_until(io, [&] { return result.has_value(); });
        return *result;
    }
    pool_status status(slot_pool& pool) {
        std::optional<pool_status> result;
        pool.async_status([&](error_code error, pool_status found) {
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
