// For which locks nobody listens to releases, by the replies of their arbiters to PUBLISH.
//
// The arbiter is the master that contenders ask first, so its notification is enough to wake them.
// A release is published there in any case, and on the other masters unless the last reply of the
// arbiter said that nobody had subscribed. A bit per lock would never be dropped, so locks share
// bits: a wrong bit costs a PUBLISH too many, or the redundancy of one.

#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace redlock::core {

class listeners {
public:
    /// \name By the hash of the lock's key
    /// \{
    bool none(std::uint64_t key) const noexcept { return none_[place(key)]; }
    /// The number of subscribers to which the arbiter has published a release.
    void counted(std::uint64_t key, std::uint64_t count) noexcept {
        none_[place(key)] = count == 0;
    }
    /// \}

    /// The arbiters may be other masters from now on.
    void forget() noexcept { none_.reset(); }

private:
    static constexpr std::size_t bits = 4'096;
    static std::size_t place(std::uint64_t key) noexcept { return key % bits; }

    std::bitset<bits> none_;
};

} // namespace redlock::core
