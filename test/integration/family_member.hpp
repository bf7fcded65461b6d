// One of the primitives by its name, for tests that do the same with each.
#pragma once

#include <redlock/blocking.hpp>
#include <redlock/election.hpp>

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
take_member(blocking::manager& manager, const std::string& kind, acquire_options options) {
    lock_manager& locks = manager.async();
    const auto keep = [](auto&& held) -> std::shared_ptr<void> {
        return std::make_shared<std::remove_cvref_t<decltype(held)>>(std::move(held));
    };
    if (kind == "resources") {
        return keep(manager.call([&](auto token) {
            return locks.async_acquire({"a", "b"}, options, std::move(token));
        }));
    }
    if (kind == "reader" || kind == "writer") {
        options.mode = kind == "reader" ? lock_mode::shared : lock_mode::exclusive;
        return keep(manager.call(
            [&](auto token) { return locks.async_acquire("r", options, std::move(token)); }));
    }
    if (kind == "slot") {
        return keep(manager.call([&](auto token) {
            return locks.async_acquire(redlock::slots("p", 1), options, std::move(token));
        }));
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
