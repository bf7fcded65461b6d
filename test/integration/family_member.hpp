// One of the primitives by its name, for tests that do the same with each.
#pragma once

#include <redlock/blocking.hpp>
#include <redlock/election.hpp>

#include <memory>
#include <stdexcept>
#include <string>

namespace redlock::test {

/// What excludes it, and is excluded by it.
inline std::string rival_of(const std::string& kind) {
    return kind == "reader" ? "writer" : kind == "writer" ? "reader" : kind;
}

inline release_result release(blocking::manager& manager, lock& held) {
    return manager.call([&](auto token) { return held.async_release(std::move(token)); });
}

inline lock_status query(blocking::manager& manager, const target& what) {
    return manager.call(
        [&](auto token) { return manager.async().async_query(what, std::move(token)); });
}

/// Takes it in a blocking call. It is released, in the background, with the last owner.
inline std::shared_ptr<lock>
take_member(blocking::manager& manager, const std::string& kind, acquire_options options) {
    const auto take = [&](const target& what) {
        return std::make_shared<lock>(manager.call([&](auto token) {
            return manager.async().async_acquire(what, options, std::move(token));
        }));
    };
    if (kind == "lock") {
        return take("l");
    }
    if (kind == "fair lock") {
        options.fifo = true;
        return take("f");
    }
    if (kind == "resources") {
        return take({"a", "b"});
    }
    if (kind == "reader" || kind == "writer") {
        options.mode = kind == "reader" ? lock_mode::shared : lock_mode::exclusive;
        return take("r");
    }
    if (kind == "slot") {
        return take(slots("p", 1));
    }
    if (kind == "slots") {
        return take(slots("q", 3, 2));
    }
    if (kind == "leader") {
        election_options term;
        term.ttl = options.ttl;
        term.stop_margin = options.ttl / 10;
        term.wait = options.wait;
        election mine(manager.async(), "e", term);
        return std::make_shared<lock>(
            manager.call([&](auto token) { return mine.async_campaign(std::move(token)); }));
    }
    throw std::invalid_argument(kind);
}

} // namespace redlock::test
