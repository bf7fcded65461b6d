// Calls the observer of a manager. It numbers the operations and catches what the observer throws.
// Without an observer each call costs one comparison.

#pragma once

#include <redlock/observer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// Converts the result of a query to votes for the observer.
inline diagnostics votes_of(const lock_status& status, std::size_t quorum) {
    diagnostics out;
    out.message = to_string(status.state);
    out.quorum = quorum;
    for (const master_lock_status& one : status.masters) {
        out.votes.push_back({
            .endpoint = one.endpoint,
            .vote = one.vote,
            .latency = {},
            .time_left = one.time_left,
            .text = one.text,
        });
    }
    return out;
}

class observer_feed {
public:
    /// `complain` receives a message when the observer has thrown.
    observer_feed(std::shared_ptr<observer> to, std::function<void(const std::string&)> complain)
        : to_(std::move(to)),
          complain_(std::move(complain)) {}

    /// Whether there is an observer.
    explicit operator bool() const noexcept { return to_ != nullptr; }

    /// Reports a start. Returns the number of the operation; 0 without an observer.
    std::uint64_t started(operation_start what) {
        if (!to_) {
            return 0;
        }
        what.id = ++operations_;
        tell([&](observer& one) { one.started(what); });
        return what.id;
    }
    void ended(const operation_end& what, const diagnostics& votes) {
        tell([&](observer& one) { one.ended(what, votes); });
    }
    /// Reports an end to the caller that passed `out`, and to the observer. `explain(diagnostics&)`
    /// fills in the text, and is called only if one of them exists.
    template <typename Explain>
    void ended(diagnostics* out, const operation_end& what, Explain explain) {
        if (out == nullptr && !to_) {
            return;
        }
        diagnostics own;
        diagnostics& votes = out != nullptr ? *out : own;
        explain(votes);
        ended(what, votes);
    }

    void acquired(const held_lock& lock) {
        tell([&](observer& one) { one.acquired(lock); });
    }
    void lost(const held_lock& lock, loss_reason reason, const diagnostics& votes) {
        tell([&](observer& one) { one.lost(lock, reason, votes); });
    }
    void released(const held_lock& lock, release_result result) {
        tell([&](observer& one) { one.released(lock, result); });
    }
    void abandoned(const held_lock& lock) {
        tell([&](observer& one) { one.abandoned(lock); });
    }
    void held_long(const held_lock& lock, std::chrono::nanoseconds held) {
        tell([&](observer& one) { one.held_long(lock, held); });
    }
    void contention(std::string_view resource, std::size_t waiting) {
        tell([&](observer& one) { one.contention(resource, waiting); });
    }

    /// Number of exceptions of the observer.
    std::uint64_t errors() const noexcept { return errors_; }

private:
    template <typename F>
    void tell(F f) {
        if (!to_) {
            return;
        }
        std::string what;
        try {
            f(*to_);
            return;
        } catch (const std::exception& error) {
            what = error.what();
        } catch (...) {
            what = "something that is not a std::exception";
        }
        ++errors_;
        complain_("the observer threw: " + what);
    }

    const std::shared_ptr<observer> to_;
    const std::function<void(const std::string&)> complain_;
    std::uint64_t operations_ = 0;
    std::uint64_t errors_ = 0;
};

}}} // namespace redlock::REDLOCK_ABI::detail
