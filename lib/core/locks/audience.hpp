// For which locks nobody listens to releases, and for which other processes do, by the replies of
// their arbiters to PUBLISH.
//
// The arbiter is the master that contenders ask first, so its notification is enough to wake them.
// A release is published on the arbiter, and on the other masters unless the arbiter has the key
// and counted no subscribers last time. One bit per lock would grow without limit, so locks share
// 4,096 bits. A collision costs a superfluous PUBLISH, or leaves a waiter with one notification
// instead of several.
//
// A process that releases a lock for which others wait yields: its own next acquire of that name
// begins a little later, so that one of them comes first. A fixed number of names is noted. A newer
// note may replace an older one, and then one acquire does not yield.

#pragma once

#include "core/base/validity.hpp"

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::core {

class audience {
public:
    /// Of the last release of a lock for which other processes waited.
    struct note {
        std::uint64_t key = 0;
        time_point until = never; // this process yields until then, perhaps in the past
        std::string release;      // its name
        std::uint64_t others = 0; // how many waited
    };

    /// \name By the hash of the lock's key
    /// \{
    /// Whether the last release that the arbiter published had no subscribers.
    bool none(std::uint64_t key) const noexcept { return none_[place(key)]; }
    /// The number of subscribers to which the arbiter has published a release.
    void counted(std::uint64_t key, std::uint64_t count) noexcept {
        none_[place(key)] = count == 0;
    }
    /// \}

    /// Notes how many other processes wait for the lock, until when this one yields, and the name
    /// of its release.
    void others_wait(
        std::uint64_t key, time_point until, std::string_view release, std::uint64_t others) {
        note& one = notes_[key % notes_max];
        one.key = key;
        one.until = until;
        one.release = release;
        one.others = others;
        yields_ = true;
    }
    void nobody_waits(std::uint64_t key) noexcept {
        if (notes_[key % notes_max].key == key) {
            notes_[key % notes_max].until = never;
        }
    }
    /// Null if nobody waited at the last release of the lock.
    const note* waited(std::uint64_t key) const noexcept {
        const note& one = notes_[key % notes_max];
        return one.key == key && one.until != never ? &one : nullptr;
    }
    /// Whether there has been any note.
    bool yields() const noexcept { return yields_; }

    /// Discards all counts, because arbiters may have changed.
    void forget() noexcept { *this = {}; }

private:
    static constexpr std::size_t bits = 4'096;
    static std::size_t place(std::uint64_t key) noexcept { return key % bits; }

    static constexpr std::size_t notes_max = 256;

    std::bitset<bits> none_;
    std::array<note, notes_max> notes_{};
    bool yields_ = false;
};

} // namespace redlock::core
