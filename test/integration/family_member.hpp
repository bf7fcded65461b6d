// One of the primitives by its name, for tests that do the same with each.
#pragma once

#include <redlock/blocking.hpp>
#include <redlock/election.hpp>
#include <redlock/multi_lock.hpp>
#include <redlock/shared_mutex.hpp>
#include <redlock/slot_pool.hpp>

#include <memory>
#include <stdexcept>
#include <string>

namespace redlock::test {

inline constexpr const char* family[] = {"resources", "reader", "writer", "slot", "leader"};

/// What excludes it, and is excluded by it.
inline std::string rival_of(const std::string& kind) {
    return kind == "reader" ? "writer" : kind == "writer" ? "reader" : kind;
}

/// Takes it in a blocking call. It is released, in the background, with the last owner.
inline std::shared_ptr<void>
take_member(blocking::manager& manager, const std::string& kind, const acquire_options& options) {
    lock_manager& locks = manager.async();
    const auto keep = [](auto&& held) -> std::shared_ptr<void> {
        return std::make_shared<std::remove_cvref_t<decltype(held)>>(std::move(held));
    };
    if (kind == "resources") {
        return keep(manager.call([&](auto token) {
            return async_acquire_all(locks, {"a", "b"}, options, std::move(token));
        }));
    }
    if (kind == "reader") {
        return keep(manager.call([&](auto token) {
            return shared_mutex(locks, "r").async_lock_shared(options, std::move(token));
        }));
    }
    if (kind == "writer") {
        return keep(manager.call([&](auto token) {
            return shared_mutex(locks, "r").async_lock(options, std::move(token));
        }));
    }
    if (kind == "slot") {
        slot_pool pool(locks, "p", 1);
        return keep(manager.call(
            [&](auto token) { return pool.async_acquire(options, std::move(token)); }));
    }
    if (kind == "leader") {
        election_options term;
        term.ttl = options.ttl;
        term.stop_margin = options.ttl / 10;
        term.wait = options.wait;
        election mine(locks, "e", term);
        return keep(
            manager.call([&](auto token) { return mine.async_campaign(std::move(token)); }));
    }
    throw std::invalid_argument(kind);
}

} // namespace redlock::test
