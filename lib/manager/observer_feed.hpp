// Queues the calls to the observer of a manager, with copies of what they refer to. It numbers the
// operations and catches what the observer throws.
// Without an observer each call costs one comparison.

#pragma once

#include "net/report_queue.hpp"

#include <redlock/observer.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

class observer_feed {
public:
    /// `complain` receives a message when the observer has thrown; called as the observer is.
    observer_feed(
        std::shared_ptr<observer> to,
        net::report_queue& reports,
        std::function<void(const std::string&)> complain)
        : to_(std::move(to)),
          reports_(reports),
          complain_(std::move(complain)) {}

    /// Whether there is an observer.
    explicit operator bool() const noexcept { return to_ != nullptr; }

    /// Reports a start. Returns the number of the operation; 0 without an observer.
    std::uint64_t started(operation what) {
        if (!to_) {
            return 0;
        }
        what.id = ++operations_;
        auto call =
            reported([mine = what, resource = std::string(what.resource)](observer& one) mutable {
                mine.resource = resource;
                one.started(mine);
            });
        // The caller's thread may have a tracing context.
        what.kind == operation_kind::renew ? reports_.add(std::move(call))
                                           : reports_.add_here(std::move(call));
        return what.id;
    }
    /// Reports an end to the caller that passed `out`, and to the observer. `explain(diagnostics&)`
    /// fills in the text, and is called only if one of them exists.
    template <typename Explain>
    void ended(diagnostics* out, const operation& what, const error_code& error, Explain explain) {
        if (out == nullptr && !to_) {
            return;
        }
        diagnostics own;
        diagnostics& votes = out != nullptr ? *out : own;
        explain(votes);
        report(&observer::ended, what, error, votes);
    }
    /// Queues a call `event(what, rest...)`, with copies of all and of the resource's name.
    template <typename What, typename... Rest>
    void report(
        void (observer::*event)(const What&, Rest...),
        const What& what,
        const std::type_identity_t<std::decay_t<Rest>>&... rest) {
        if (to_) {
            reports_.add(reported([event, mine = what, name = std::string(what.resource), rest...](
                                      observer& one) mutable {
                mine.resource = name;
                (one.*event)(mine, rest...);
            }));
        }
    }
    void contention(std::string_view resource, std::size_t waiting) {
        if (to_) {
            reports_.add(reported([name = std::string(resource), waiting](observer& one) {
                one.contention(name, waiting);
            }));
        }
    }
    void members_changed(std::uint64_t generation, std::span<const std::string> members) {
        if (to_) {
            reports_.add(reported([generation, names = std::vector(members.begin(), members.end())](
                                      observer& one) { one.members_changed(generation, names); }));
        }
    }

    /// Number of exceptions of the observer.
    std::uint64_t errors() const noexcept { return errors_; }

private:
    /// The call `f`, as it is queued.
    template <typename F>
    std::function<void()> reported(F f) {
        return [this, f = std::move(f)]() mutable {
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
        };
    }

    const std::shared_ptr<observer> to_;
    net::report_queue& reports_;
    const std::function<void(const std::string&)> complain_;
    std::uint64_t operations_ = 0;
    std::atomic<std::uint64_t> errors_ = 0;
};

}}} // namespace redlock::REDLOCK_ABI::detail
