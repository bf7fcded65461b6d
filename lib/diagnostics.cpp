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

namespace redlock { inline namespace REDLOCK_ABI {

namespace {

using detail::printable;

std::string milliseconds_of(std::chrono::microseconds time) {
    return fmt::format("{:.1f} ms", static_cast<double>(time.count()) / 1000);
}

template <typename Votes, typename Describe>
std::string listed(const Votes& votes, Describe describe) {
    std::string out;
    for (const auto& one : votes) {
        fmt::format_to(std::back_inserter(out), "{}{} ", out.empty() ? "" : ", ", one.endpoint);
        describe(out, one);
    }
    return out;
}

} // namespace

std::string_view to_string(release_result result) noexcept {
    switch (result) {
    case release_result::released:
        return "released";
    case release_result::expired:
        return "expired";
    case release_result::stolen:
        return "stolen";
    case release_result::uncertain:
        return "uncertain";
    }
    return "unknown";
}

std::string_view to_string(extend_result result) noexcept {
    switch (result) {
    case extend_result::extended:
        return "extended";
    case extend_result::capped:
        return "capped";
    }
    return "unknown";
}

std::string_view to_string(loss_reason reason) noexcept {
    switch (reason) {
    case loss_reason::none:
        return "none";
    case loss_reason::expired:
        return "expired";
    case loss_reason::owned_by_other:
        return "owned_by_other";
    case loss_reason::majority_unreachable:
        return "majority_unreachable";
    case loss_reason::max_hold_reached:
        return "max_hold_reached";
    case loss_reason::closed:
        return "closed";
    case loss_reason::stalled:
        return "stalled";
    }
    return "unknown";
}

std::string_view to_string(lock_state state) noexcept {
    switch (state) {
    case lock_state::free:
        return "free";
    case lock_state::held:
        return "held";
    case lock_state::undecided:
        return "undecided";
    }
    return "unknown";
}

std::string_view to_string(vote what) noexcept {
    switch (what) {
    case vote::pending:
        return "pending";
    case vote::granted:
        return "granted";
    case vote::held:
        return "held";
    case vote::owned_by_other:
        return "owned_by_other";
    case vote::absent:
        return "absent";
    case vote::unreachable:
        return "unreachable";
    case vote::timed_out:
        return "timed_out";
    case vote::error:
        return "error";
    case vote::quarantined:
        return "quarantined";
    case vote::duplicate:
        return "duplicate";
    }
    return "unknown";
}

std::string_view to_string(log_level level) noexcept {
    switch (level) {
    case log_level::debug:
        return "debug";
    case log_level::info:
        return "info";
    case log_level::warning:
        return "warning";
    case log_level::error:
        return "error";
    case log_level::off:
        return "off";
    }
    return "unknown";
}

logger log_to_stderr(log_level level) {
    return {level, [](log_level of_line, std::string_view line) {
                // One write, as other threads and processes may write to the same file.
                const std::string text = fmt::format("redlock: {}: {}\n", to_string(of_line), line);
                std::fwrite(text.data(), 1, text.size(), stderr);
            }};
}

std::string_view to_string(operation_kind what) noexcept {
    switch (what) {
    case operation_kind::acquire:
        return "acquire";
    case operation_kind::extend:
        return "extend";
    case operation_kind::renew:
        return "renew";
    case operation_kind::release:
        return "release";
    case operation_kind::query:
        return "query";
    }
    return "unknown";
}

std::string_view to_string(lock_mode what) noexcept {
    switch (what) {
    case lock_mode::exclusive:
        return "exclusive";
    case lock_mode::shared:
        return "shared";
    case lock_mode::writer:
        return "writer";
    }
    return "unknown";
}

std::string_view to_string(protocol what) noexcept {
    switch (what) {
    case protocol::guarded:
        return "guarded";
    case protocol::plain:
        return "plain";
    }
    return "unknown";
}

std::string_view to_string(master_state state) noexcept {
    switch (state) {
    case master_state::down:
        return "down";
    case master_state::connecting:
        return "connecting";
    case master_state::founding:
        return "founding";
    case master_state::admitted:
        return "admitted";
    case master_state::silent:
        return "silent";
    case master_state::quarantined:
        return "quarantined";
    case master_state::duplicate:
        return "duplicate";
    case master_state::ineligible:
        return "ineligible";
    }
    return "unknown";
}

std::string to_string(const diagnostics& it) {
    std::string out = it.message.empty() ? "granted" : it.message;
    if (it.attempts > 0) {
        fmt::format_to(
            std::back_inserter(out),
            " after {} attempt{} in {}",
            it.attempts,
            it.attempts == 1 ? "" : "s",
            milliseconds_of(it.elapsed));
    }
    if (it.votes.empty()) {
        return out;
    }
    return fmt::format(
        "{}, {} of {} votes needed: {}",
        out,
        it.quorum,
        it.votes.size(),
        listed(it.votes, [](std::string& line, const master_vote& one) {
            line += to_string(one.vote);
            const bool in_text = one.vote == vote::quarantined && !one.text.empty();
            if (one.time_left && !in_text) {
                fmt::format_to(std::back_inserter(line), " ({} ms left)", one.time_left->count());
            }
            if (one.latency.count() > 0) {
                line.append(" ").append(milliseconds_of(one.latency));
            }
            if (!one.text.empty()) {
                line += " (" + printable(one.text) + ")";
            }
        }));
}

std::string to_string(const lock_status& it) {
    std::string out(to_string(it.state));
    if (!it.owner.empty()) {
        out += " by " + it.owner;
    }
    if (it.time_left) {
        fmt::format_to(std::back_inserter(out), ", {} ms left", it.time_left->count());
    }
    out += ": ";
    return out + listed(it.masters, [](std::string& line, const master_lock_status& one) {
               line += to_string(one.vote);
               if (!one.owner.empty()) {
                   line += " by " + one.owner;
               }
               if (one.time_left) {
                   fmt::format_to(
                       std::back_inserter(line), " ({} ms left)", one.time_left->count());
               }
               if (!one.text.empty()) {
                   line += " (" + printable(one.text) + ")";
               }
           });
}

std::string to_string(const health& it) {
    return fmt::format(
        "{}, {} of {} masters admitted, {} needed, {} protocol{}: {}",
        it.ready ? "ready" : "not ready",
        it.admitted,
        it.masters.size(),
        it.quorum,
        to_string(it.protocol),
        it.quarantine_off ? ", QUARANTINE IS OFF" : "",
        listed(it.masters, [](std::string& line, const master_health& one) {
            line += to_string(one.state);
            if (!one.text.empty()) {
                line += " (" + printable(one.text) + ")";
            }
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
        return std::count_if(it.votes.begin(), it.votes.end(), [what](const master_vote& one) {
            return one.vote == what;
        });
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
    if (error == errc::no_quorum) {
        const auto voted = count(vote::granted) + count(vote::held) + count(vote::owned_by_other)
                           + count(vote::absent);
        const auto pending = count(vote::pending);
        return pending == 0
                   ? fmt::format("no quorum: {} of {} masters could vote", voted, it.votes.size())
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
