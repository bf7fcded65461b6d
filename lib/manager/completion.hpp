// Keeps a handler of a caller and calls it once, on its associated executor, never inline.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/error.hpp>
#include <redlock/with_diagnostics.hpp>

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/execution/relationship.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/require.hpp>

#include <algorithm>
#include <cstdint>
#include <forward_list>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// \name Types of cancellation that an operation accepts
/// Total cancellation promises that the operation has had no effect.
/// \{
inline constexpr auto without_effects = boost::asio::cancellation_type::terminal
                                        | boost::asio::cancellation_type::partial
                                        | boost::asio::cancellation_type::total;
inline constexpr auto with_effects =
    boost::asio::cancellation_type::terminal | boost::asio::cancellation_type::partial;
/// \}

/// Returns true if an operation that has effects accepts this cancellation.
inline bool ends(boost::asio::cancellation_type type) noexcept {
    return (type & with_effects) != boost::asio::cancellation_type::none;
}

/// Executors for handlers without one of their own. Kept in the forms that each handler needs:
/// converting them each time costs more than the rest of a completion.
struct home {
    explicit home(const boost::asio::any_io_executor& io)
        : executor(io),
          fallback(io),
          later(boost::asio::prefer(
              boost::asio::require(io, boost::asio::execution::blocking_t::never),
              boost::asio::execution::relationship_t::fork)) {
        if (const auto* const found = later.target<boost::asio::io_context::executor_type>()) {
            context = *found;
        }
    }

    /// Calls `f` later, on the executor's own threads.
    template <typename F>
    void post(F&& f) const {
        if (context) {
            context->execute(std::forward<F>(f));
        } else {
            later.execute(std::forward<F>(f));
        }
    }

    boost::asio::any_io_executor executor;
    boost::asio::any_completion_executor fallback;
    boost::asio::any_io_executor later; // never runs a function inside the call
    // The same executor if it belongs to an io_context, which avoids type erasure of each function.
    std::optional<boost::asio::io_context::executor_type> context;
};

/// A handler that waits for its operation.
template <typename... Arguments>
class completion {
public:
    using handler = boost::asio::any_completion_handler<void(Arguments...)>;
    using cancellation_slot_type = boost::asio::cancellation_slot;

    completion(handler&& waiting, const home& io) : handler_(std::move(waiting)) {
        auto own = boost::asio::get_associated_executor(handler_, io.fallback);
        if (own != io.fallback) {
            // Another context must not run out of work while the handler waits. The manager's own
            // context has the timer or the socket of the operation.
            elsewhere_ = std::make_unique<boost::asio::any_completion_executor>(boost::asio::prefer(
                std::move(own), boost::asio::execution::outstanding_work_t::tracked));
        }
    }

    cancellation_slot_type get_cancellation_slot() const noexcept {
        return boost::asio::get_associated_cancellation_slot(handler_);
    }

    /// Posts the handler. A cancellation slot is not thread-safe, so it is cleared on the same
    /// executor.
    void operator()(const home& io, Arguments... arguments) && {
        auto call = [handler = std::move(handler_), ... results = std::move(arguments)]() mutable {
            auto slot = boost::asio::get_associated_cancellation_slot(handler);
            if (slot.is_connected()) {
                slot.clear();
            }
            std::move(handler)(std::move(results)...);
        };
        if (elsewhere_) {
            // Via the manager's executor: a dispatch from here could run the handler inline.
            boost::asio::post(
                io.executor, boost::asio::bind_executor(std::move(*elsewhere_), std::move(call)));
        } else {
            io.post(std::move(call));
        }
    }

private:
    handler handler_;
    std::unique_ptr<boost::asio::any_completion_executor> elsewhere_; // seven pointers, mostly none
};

/// Posts the handler of an operation that ends before it begins.
template <typename... Arguments>
void complete(
    const home& io,
    boost::asio::any_completion_handler<void(Arguments...)>&& done,
    std::type_identity_t<Arguments>... arguments) {
    completion<Arguments...>(std::move(done), io)(io, std::move(arguments)...);
}

/// Handlers that wait for one event, in order of arrival; each can be cancelled by its number.
template <typename... Arguments>
class waiters {
public:
    struct entry {
        std::uint64_t id; // 0: cannot be cancelled
        diagnostics* out; // to be filled before the handler is called; may be null
        completion<Arguments...> done;
    };

    void add(entry&& waiting) { entries_.push_front(std::move(waiting)); }

    bool empty() const noexcept { return entries_.empty(); }

    /// Destroys all without a call.
    void clear() noexcept { std::exchange(entries_, {}); }

    /// Whether a caller passed diagnostics.
    bool wants_explanation() const noexcept {
        return std::any_of(entries_.begin(), entries_.end(), [](const entry& waiting) {
            return waiting.out != nullptr;
        });
    }

    /// Fills the diagnostics that callers passed.
    void explain_all(const diagnostics& explanation) {
        for (entry& waiting : entries_) {
            if (waiting.out != nullptr) {
                *waiting.out = explanation;
            }
        }
    }

    /// Completes all with the same result.
    void complete_all(const home& io, Arguments... arguments) {
        auto all = std::exchange(entries_, {});
        all.reverse();
        for (entry& waiting : all) {
            std::move(waiting.done)(io, arguments...);
        }
    }

    /// Completes the handler with this number, if it still waits.
    void complete(const home& io, std::uint64_t id, Arguments... arguments) {
        auto before = entries_.before_begin();
        for (auto at = entries_.begin(); at != entries_.end(); before = at++) {
            if (at->id == id) {
                completion<Arguments...> done = std::move(at->done);
                entries_.erase_after(before);
                std::move(done)(io, std::move(arguments)...);
                return;
            }
        }
    }

private:
    // The latest first, in one pointer. (Boost 1.81 cannot assign handlers, as a vector would.)
    std::forward_list<entry> entries_;
};

}}} // namespace redlock::REDLOCK_ABI::detail
