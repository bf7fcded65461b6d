// The votes of all masters for one claim: what each has said, whether it may have the key, and
// until when it counts.

#pragma once

#include "core/base/validity.hpp"
#include "extension.hpp"

#include <redlock/diagnostics.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::core {

struct settings;
class masters;

/// The remaining time of a lease, if it is unknown.
constexpr std::chrono::milliseconds lease_unknown{-1};

/// Value of a removal mark for a removal that is queued but not formatted yet.
inline constexpr std::uint64_t not_written = ~std::uint64_t{0};

/// The state of one claim on one master: its vote, its key, and until when both count. Every lock
/// and every waiter has one per master: kept small.
struct ballot : vote_term {
    vote said = vote::pending;
    key_state found = key_state::unknown; // by the current extension, or the last
    bool asked : 1 = false;               // a command to set the key was sent: the key may exist
    bool unvouched : 1 = false; // set by a SET without a certificate: the master may have lost
                                // another owner's key before
    std::chrono::duration<std::uint32_t, std::micro> latency{0}; // an hour at most

    static constexpr decltype(latency) latency_of(clock::duration took) noexcept {
        return std::chrono::floor<decltype(latency)>(
            std::min<clock::duration>(took, std::chrono::hours(1)));
    }
};

/// The votes of all masters, in the order of the configuration, with their texts.
class ballots {
public:
    std::vector<ballot> of;

    ballots() noexcept = default;
    ballots(const ballots& other) { *this = other; }
    ballots(ballots&&) noexcept = default;
    ballots& operator=(const ballots& other) {
        if (this != &other) {
            of = other.of;
            details_ = other.details_ ? std::make_unique<detail[]>(of.size()) : nullptr;
            std::ranges::copy(other.details(), details().begin());
        }
        return *this;
    }
    ballots& operator=(ballots&&) noexcept = default;
    ~ballots() = default;

    /// Keeps the buffers: a claim with fencing needs them each time.
    void reset(std::size_t masters) {
        if (of.size() != masters) {
            details_.reset();
        }
        of.assign(masters, ballot());
        std::ranges::fill(details(), detail());
    }
    void clear() noexcept {
        of.clear();
        details_.reset();
    }
    void clear_details() noexcept { details_.reset(); }

    /// \name What few votes have
    /// \{
    /// The fencing counter that came with the grant; 0: none.
    std::uint64_t counter(std::size_t master) const noexcept {
        return details_ ? details_[master].counter : 0;
    }
    void set_counter(std::size_t master, std::uint64_t counter) {
        set(master, &detail::counter, counter);
    }
    bool has_counter_below(std::uint64_t token) const noexcept {
        return std::ranges::any_of(details(), [token](const detail& one) {
            return one.counter != 0 && one.counter < token;
        });
    }
    /// The remaining lease of the holder.
    std::chrono::milliseconds left(std::size_t master) const noexcept {
        return details_ ? details_[master].left : lease_unknown;
    }
    void set_left(std::size_t master, std::chrono::milliseconds left) {
        set(master, &detail::left, left);
    }
    /// Of a rollback: the end of the removal in the stream to the master.
    std::uint64_t removal_mark(std::size_t master) const noexcept {
        return details_ ? details_[master].removal_mark : 0;
    }
    void set_removal_mark(std::size_t master, std::uint64_t mark) {
        set(master, &detail::removal_mark, mark);
    }
    std::string_view text(std::size_t master) const noexcept {
        return details_ ? details_[master].text : std::string_view();
    }
    void note(std::size_t master, std::string_view text) {
        set(master, &detail::text, std::string(text));
    }
    void clear_texts() noexcept {
        for (detail& one : details()) {
            one.text.clear();
        }
    }
    /// \}

    /// The masters with this vote, and their number.
    master_set with(vote what) const noexcept {
        return set_where(of.size(), [&](std::size_t i) { return of[i].said == what; });
    }
    std::size_t count(vote what) const noexcept {
        return static_cast<std::size_t>(std::popcount(with(what)));
    }
    /// Whether any master has the key or may have it: it granted, or its outcome is unknown.
    bool may_be_set() const noexcept {
        return std::ranges::any_of(of, [](const ballot& one) {
            return one.asked
                   && (one.said == vote::granted || one.said == vote::pending
                       || one.said == vote::timed_out || one.said == vote::unreachable);
        });
    }
    /// Until when at least `quorum` votes can be relied on.
    time_point lasts_until(std::size_t quorum) const noexcept {
        return nth_largest(of, quorum, [](const ballot& one) { return one.until(); });
    }

private:
    struct detail {
        std::uint64_t counter = 0;
        std::uint64_t removal_mark = 0;
        std::chrono::milliseconds left = lease_unknown;
        std::string text;
    };

    template <typename T>
    void set(std::size_t master, T detail::*what, T value) {
        if (!details_) {
            if (value == detail().*what) {
                return;
            }
            details_ = std::make_unique<detail[]>(of.size());
        }
        details_[master].*what = std::move(value);
    }

    std::span<detail> details() const noexcept {
        return {details_.get(), details_ ? of.size() : 0};
    }

    std::unique_ptr<detail[]> details_; // null, or one for each master
};

/// Describes votes as text.
std::vector<master_vote>
describe(const ballots& votes, const settings& rules, const masters& masters, time_point now);

} // namespace redlock::core
