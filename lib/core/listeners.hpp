// For which locks nobody listens to releases, by the replies of their arbiters to PUBLISH.
//
// The arbiter is the master that contenders ask first, so its notification is enough to wake them.
// A release is published on the arbiter, and on the other masters unless the arbiter has the key
// and counted no subscribers last time. One bit per lock would grow without limit, so locks share
// 4,096 bits. A collision costs a superfluous PUBLISH, or leaves a waiter with one notification
// instead of several.

#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace redlock::core {

class listeners {
public:
    /// \name By the hash of the lock's key
    /// \{
    /// Whether the last release that the arbiter published had no subscribers.
    bool none(std::uint64_t key) const noexcept { return none_[place(key)]; }
    /// The number of subscribers to which the arbiter has published a release.
    void counted(std::uint64_t key, std::uint64_t count) noexcept {
        none_[place(key)] = count == 0;
    }
    /// \}

    /// Discards all counts, because arbiters may have changed.
    void forget() noexcept { none_.reset(); }

private:
    static constexpr std::size_t bits = 4'096;
    static std::size_t place(std::uint64_t key) noexcept { return key % bits; }

    std::bitset<bits> none_;
};

} // namespace redlock::core
