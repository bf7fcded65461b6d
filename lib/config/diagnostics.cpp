#include "core/masters/settings.hpp"
#include "explain.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/logger.hpp>
#include <redlock/metrics.hpp>
#include <redlock/observer.hpp>

#include <boost/asio/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

namespace {

using detail::printable;

std::string milliseconds_of(std::chrono::microseconds time) {
    return fmt::format("{:.1f} ms", static_cast<double>(time.count()) / 1000);
}

std::string text_of(std::optional<std::chrono::milliseconds> time_left) {
    return time_left ? fmt::format(" ({} ms left)", time_left->count()) : "";
}

std::string in_brackets(std::string_view text) {
    return text.empty() ? "" : " (" + printable(text) + ")";
}

template <typename Masters, typename Describe>
std::string listed(const Masters& masters, Describe describe) {
    std::string out;
    for (const auto& one : masters) {
        out.append(out.empty() ? "" : ", ").append(one.endpoint).append(" ");
        out.append(describe(one));
    }
    return out;
}

// What to do if masters have not been reached yet by a manager that was started just now.
std::string of_start(const diagnostics& it, std::size_t voted) {
    const auto fresh = std::ranges::count(it.votes, core::not_connected_yet, &master_vote::text);
    return voted < it.quorum && voted + static_cast<std::size_t>(fresh) >= it.quorum
               ? "; the manager was started just now: await its readiness (async_ready) first"
               : "";
}

// How long to wait if a quarantine is what too few votes come from.
std::string of_quarantine(const diagnostics& it, std::size_t voted) {
    std::vector<std::chrono::milliseconds> left;
    for (const master_vote& one : it.votes) {
        if (one.vote == vote::quarantined && one.time_left) {
            left.push_back(*one.time_left);
        }
    }
    if (voted >= it.quorum || voted + left.size() < it.quorum) {
        return {};
    }
    std::ranges::sort(left);
    const auto longest = std::chrono::ceil<std::chrono::seconds>(left[it.quorum - voted - 1]);
    return fmt::format(
        "; the quarantine of the masters ends in {} s: wait longer than that", longest.count());
}

} // namespace

logger log_to_stderr(log_level level) {
    return {level, [](log_level of_line, std::string_view line) {
                // One write, as other threads and processes may write to the same file.
                const std::string text = fmt::format("redlock: {}: {}\n", to_string(of_line), line);
                std::fwrite(text.data(), 1, text.size(), stderr);
            }};
}

std::string to_string(const diagnostics& it) {
    std::string out = it.message.empty() ? "granted" : it.message;
    if (it.attempts > 0) {
        out.insert(
            std::min(out.find("; "), out.size()), // what follows says what to do
            fmt::format(
                " after {} attempt{} in {}",
                it.attempts,
                it.attempts == 1 ? "" : "s",
                milliseconds_of(it.elapsed)));
    }
    if (it.votes.empty()) {
        return out;
    }
    return fmt::format(
        "{}, {} of {} votes needed: {}",
        out,
        it.quorum,
        it.votes.size(),
        listed(it.votes, [](const master_vote& one) {
            const bool in_text = one.vote == vote::quarantined && !one.text.empty();
            return fmt::format(
                "{}{}{}{}",
                to_string(one.vote),
                in_text ? "" : text_of(one.time_left),
                one.latency.count() > 0 ? " " + milliseconds_of(one.latency) : "",
                in_brackets(one.text));
        }));
}

std::size_t lock_status::count(lock_state wanted) const noexcept {
    return static_cast<std::size_t>(std::ranges::count(slots, wanted, &slot_status::state));
}

std::string to_string(const lock_status& it) {
    const auto by = [](const auto& found) {
        return found.readers == 1           ? " by a reader"
               : found.readers != 0         ? fmt::format(" by {} readers", found.readers)
               : found.owner_digest.empty() ? ""
                                            : " by " + found.owner_digest;
    };
    const std::string slots =
        it.slots.empty()
            ? ""
            : fmt::format(", {} of {} slots held", it.count(lock_state::held), it.slots.size());
    return fmt::format(
        "{}{}{}{}: {}",
        to_string(it.state),
        by(it),
        slots,
        it.time_left ? fmt::format(", {} ms left", it.time_left->count()) : "",
        listed(it.masters, [&](const master_vote& one) {
            return fmt::format(
                "{}{}{}{}",
                to_string(one.vote),
                by(one),
                text_of(one.time_left),
                in_brackets(one.text));
        }));
}

std::string to_string(const health& it) {
    return fmt::format(
        "{}, {} of {} masters admitted, {} needed: {}",
        it.ready ? "ready" : "not ready",
        it.admitted,
        it.masters.size(),
        it.quorum,
        listed(it.masters, [](const master_health& one) {
            return fmt::format("{}{}", to_string(one.state), in_brackets(one.text));
        }));
}

namespace detail {

std::string printable(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
            fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
        } else {
            out += c;
        }
    }
    return out;
}

std::string message_of(const error_code& error, const diagnostics& it) {
    if (!error) {
        return {};
    }
    if (error == boost::asio::error::operation_aborted) {
        return "cancelled";
    }
    const auto count = [&](vote what) {
        return static_cast<std::size_t>(std::ranges::count(it.votes, what, &master_vote::vote));
    };
    if (error == errc::contended && count(vote::held) == 0) {
        return "contended: this process holds it";
    }
    if (error == errc::contended) {
        return fmt::format(
            "contended: {} of {} masters hold it for another owner",
            count(vote::held),
            it.votes.size());
    }
    // Other owners of locks are `held`.
    if (const auto others = count(vote::owned_by_other);
        error == errc::no_quorum && others != 0 && others >= it.quorum) {
        return fmt::format(
            "no quorum: {} of {} masters have a key that is not a lock", others, it.votes.size());
    }
    if (error == errc::no_quorum) {
        const auto voted = count(vote::granted) + count(vote::held) + count(vote::owned_by_other)
                           + count(vote::absent);
        const auto pending = count(vote::pending);
        return pending == 0
                   ? fmt::format("no quorum: {} of {} masters could vote", voted, it.votes.size())
                         + of_quarantine(it, voted) + of_start(it, voted)
                   : fmt::format(
                       "no quorum: {} of {} masters voted, {} pending",
                       voted,
                       it.votes.size(),
                       pending);
    }
    return error.message();
}

} // namespace detail

}} // namespace redlock::REDLOCK_ABI
