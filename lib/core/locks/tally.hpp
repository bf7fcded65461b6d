// The tally of one attempt: counts votes, and knows when they decide. A majority of *all*
// members is needed: missing votes do not reduce it.

#pragma once

#include <redlock/diagnostics.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>

namespace redlock::core {

enum class verdict : unsigned char {
    open,      // undecided
    won,       // a majority granted
    contended, // cannot be won; a majority replied, and another owner has the lock or a part of it
    no_quorum, // cannot be won; no majority replied
};

class tally {
public:
    tally() noexcept = default;
    tally(std::size_t masters, std::size_t quorum) noexcept
        : pending_(static_cast<std::uint16_t>(masters)),
          quorum_(static_cast<std::uint16_t>(quorum)) {
        assert(quorum >= 1 && quorum <= masters);
    }

    /// Counts the vote of one more master. Any vote but `granted` and `held` is a failure.
    void add(vote what) noexcept {
        assert(pending_ > 0 && what != vote::pending);
        --pending_;
        if (what == vote::granted) {
            ++granted_;
        } else if (what == vote::held) {
            ++held_;
        }
    }

    /// The round has ended: no further vote counts.
    void close() noexcept { pending_ = 0; }

    verdict decide() const noexcept {
        if (granted_ >= quorum_) {
            return verdict::won;
        }
        if (granted_ + pending_ >= quorum_) {
            return verdict::open;
        }
        // It is lost. Contention and outage are different results, so wait for the votes that
        // distinguish them.
        const unsigned answered = granted_ + held_;
        if (held_ > 0 && answered >= quorum_) {
            return verdict::contended;
        }
        return answered + pending_ < quorum_ || pending_ == 0 ? verdict::no_quorum : verdict::open;
    }

    std::size_t granted() const noexcept { return granted_; }
    std::size_t held() const noexcept { return held_; }
    std::size_t quorum() const noexcept { return quorum_; }

private:
    // Small types, because every claim reserves room for its largest phase.
    std::uint16_t granted_ = 0;
    std::uint16_t held_ = 0;
    std::uint16_t pending_ = 0;
    std::uint16_t quorum_ = 1;
};

} // namespace redlock::core
