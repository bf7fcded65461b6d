// A completion token with which an operation reports how each master voted: in the exception, or in
// an object of the caller.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/error.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <boost/system/system_error.hpp>

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace detail {

/// Returns `error` as an exception with its votes.
std::exception_ptr explained(const error_code& error, diagnostics why);

} // namespace detail

/// An error with the votes of the masters. Thrown by operations
/// with the default token, by `async_with_lock`, and by the functions of `redlock::blocking` that
/// wait for an operation.
class error_with_diagnostics : public boost::system::system_error {
public:
    /// Returns one line: the name of the lock, the reason with the votes, and the number of the
    /// error. It lives as long as a copy of the exception.
    const char* what() const noexcept override;

    /// Returns how each master voted. Empty if the masters were not asked.
    const diagnostics& get_diagnostics() const noexcept { return *why_; }

private:
    friend std::exception_ptr detail::explained(const error_code& error, diagnostics why);
    error_with_diagnostics(const error_code& error, diagnostics why);

    std::shared_ptr<const diagnostics> why_; // copies of exceptions must not throw
};

namespace detail {

template <typename CompletionToken>
struct with_diagnostics_t {
    CompletionToken token;
};
template <typename CompletionToken>
struct with_diagnostics_to_t {
    CompletionToken token;
    diagnostics* out;
};

} // namespace detail

/// Returns a token with which an error becomes an exception that contains how each master voted.
/// `void(error_code, T)` becomes `void(std::exception_ptr, T)`, where the exception is an
/// `error_with_diagnostics`. Other completion signatures stay the same.
/// \param token a completion token, such as `boost::asio::use_future`
template <typename CompletionToken>
detail::with_diagnostics_t<std::decay_t<CompletionToken>>
with_diagnostics(CompletionToken&& token) {
    return {std::forward<CompletionToken>(token)};
}

/// Returns a token with which an operation stores in `out` how each master voted, after success as
/// well. The completion signature stays the same. `out` is filled before the handler runs:
/// \code
/// redlock::diagnostics why;
/// auto [error, lock] = co_await locks.async_acquire(
///     "r", options, redlock::with_diagnostics(why, asio::as_tuple(asio::use_awaitable)));
/// \endcode
/// \param out must live until the handler runs
/// \param token a completion token. It may be wrapped in other adapters, or wrap them.
template <typename CompletionToken>
detail::with_diagnostics_to_t<std::decay_t<CompletionToken>>
with_diagnostics(diagnostics& out, CompletionToken&& token) {
    return {std::forward<CompletionToken>(token), &out};
}

/// The default token of the operations in which masters vote.
using default_token = detail::with_diagnostics_t<boost::asio::deferred_t>;

namespace detail {

/// Where an operation stores its votes.
struct diagnostics_sink {
    diagnostics* out = nullptr;
    bool failures_only = false; // the votes of a success cost something to format

    diagnostics* on(const error_code& error) const noexcept {
        return failures_only && !error ? nullptr : out;
    }
};

/// The sink of a handler. It is associated with a handler as an executor is, so adapters keep it.
template <typename Handler, typename Default = diagnostics_sink>
struct associated_sink {
    using type = diagnostics_sink;

    static type get(const Handler& handler, const Default& otherwise = {}) noexcept {
        using by_adapter = boost::asio::associator<detail::associated_sink, Handler, Default>;
        if constexpr (requires { handler.get_diagnostics_sink(); }) {
            return handler.get_diagnostics_sink();
        } else if constexpr (requires { by_adapter::get(handler, otherwise); }) {
            return by_adapter::get(handler, otherwise);
        } else {
            return otherwise;
        }
    }
};

/// A handler with a sink: of the caller, or its own for an exception.
template <typename Handler, bool throws>
struct diagnosed {
    using wrapped_handler = Handler;
    Handler done;
    std::conditional_t<throws, std::unique_ptr<diagnostics>, diagnostics*> out;

    diagnostics_sink get_diagnostics_sink() const noexcept {
        return {std::to_address(out), throws};
    }

    template <typename... Results>
        requires(!throws)
    void operator()(Results&&... results) { std::move(done)(std::forward<Results>(results)...); }
    template <typename... Results>
    requires throws void operator()(const error_code& error, Results&&... results) {
        std::move(done)(
            error ? explained(error, std::move(*out)) : std::exception_ptr(),
            std::forward<Results>(results)...);
    }
};

template <typename Initiation, bool throws>
struct diagnosed_initiation : Initiation { // has its executor
    diagnostics* out;

    template <typename Handler, typename... Arguments>
    void operator()(Handler&& handler, Arguments&&... arguments) && {
        static_cast<Initiation&&> (*this)(
            wrap(std::forward<Handler>(handler)), std::forward<Arguments>(arguments)...);
    }
    template <typename Handler, typename... Arguments>
    void operator()(Handler&& handler, Arguments&&... arguments) const& {
        static_cast<const Initiation&> (*this)(
            wrap(std::forward<Handler>(handler)), std::forward<Arguments>(arguments)...);
    }

private:
    template <typename Handler>
    diagnosed<std::decay_t<Handler>, throws> wrap(Handler&& handler) const {
        if constexpr (throws) {
            return {std::forward<Handler>(handler), std::make_unique<diagnostics>()};
        } else {
            return {std::forward<Handler>(handler), out};
        }
    }
};

/// The result of an operation with one of the tokens; `Signatures` are those of the inner token.
template <bool throws, boost::asio::completion_signature... Signatures>
struct diagnosed_result {
    template <typename Initiation, typename Token, typename... Arguments>
    static auto initiate(Initiation&& begin, Token token, Arguments&&... arguments)
        -> decltype(boost::asio::async_initiate<decltype(token.token), Signatures...>(
            std::declval<diagnosed_initiation<std::decay_t<Initiation>, throws>>(),
            token.token,
            std::forward<Arguments>(arguments)...)) {
        diagnostics* out = nullptr;
        if constexpr (!throws) {
            out = token.out;
        }
        return boost::asio::async_initiate<decltype(token.token), Signatures...>(
            diagnosed_initiation<std::decay_t<Initiation>, throws>{
                {std::forward<Initiation>(begin)}, out},
            token.token,
            std::forward<Arguments>(arguments)...);
    }
};

/// The result with a token that has nothing to add.
template <boost::asio::completion_signature... Signatures>
struct unchanged_result {
    template <typename Initiation, typename Token, typename... Arguments>
    static auto initiate(Initiation&& begin, Token token, Arguments&&... arguments)
        -> decltype(boost::asio::async_initiate<decltype(token.token), Signatures...>(
            std::forward<Initiation>(begin), token.token, std::forward<Arguments>(arguments)...)) {
        return boost::asio::async_initiate<decltype(token.token), Signatures...>(
            std::forward<Initiation>(begin), token.token, std::forward<Arguments>(arguments)...);
    }
};

/// Calls `start(arguments..., sink, handler)`, or `start(arguments..., handler)` if no masters
/// vote. Carries an executor so that adapters such as `cancel_after` can find it.
template <auto start>
struct initiation {
    using executor_type = boost::asio::any_io_executor;
    executor_type executor;
    executor_type get_executor() const noexcept { return executor; }

    template <typename Handler, typename... Arguments>
    void operator()(Handler&& handler, Arguments&&... arguments) const {
        if constexpr (
            std::is_invocable_v<decltype(start), Arguments..., diagnostics_sink, Handler>) {
            const diagnostics_sink sink = associated_sink<std::decay_t<Handler>>::get(handler);
            std::invoke(
                start, std::forward<Arguments>(arguments)..., sink, std::forward<Handler>(handler));
        } else {
            std::invoke(
                start, std::forward<Arguments>(arguments)..., std::forward<Handler>(handler));
        }
    }
};

/// Whether a completion token or a handler fits. If not, the compiler prints one sentence about it.
template <typename Signature, typename CompletionToken>
constexpr bool fits() {
    constexpr bool result = boost::asio::completion_token_for<CompletionToken, Signature>;
    static_assert(
        result,
        "the last argument must be a completion token, such as asio::use_awaitable, or a handler "
        "for the completion signature of this function");
    return result;
}

/// Starts an operation.
template <typename Signature, auto start, typename CompletionToken, typename... Arguments>
auto initiate(
    boost::asio::any_io_executor executor, CompletionToken&& token, Arguments&&... arguments) {
    if constexpr (fits<Signature, CompletionToken>()) {
        return boost::asio::async_initiate<CompletionToken, Signature>(
            initiation<start>{std::move(executor)}, token, std::forward<Arguments>(arguments)...);
    }
}

/// A handler of this library that wraps that of a caller. It has the executor, the allocator unless
/// it says otherwise, the cancellation slot and the sink of the caller's handler.
template <typename Handler>
concept wrapper = requires(Handler& handler) {
    { handler.done } -> std::same_as<typename Handler::wrapped_handler&>;
};

/// Calls `f` with the caller's handler, whose type is erased, and the results. Its own type is
/// erased again, with another allocator: Asio would use that of the caller's handler after it had
/// destroyed that handler.
template <typename Handler, typename F>
struct adapted {
    using wrapped_handler = Handler;
    using allocator_type = boost::asio::recycling_allocator<void>;
    allocator_type get_allocator() const noexcept { return {}; }

    Handler done;
    F f;

    template <typename... Results>
    void operator()(Results&&... results) {
        std::move(f)(std::move(done), std::forward<Results>(results)...);
    }
};

template <typename Handler, typename F>
adapted<Handler, F> adapt(Handler done, F f) {
    return {std::move(done), std::move(f)};
}

} // namespace detail

}} // namespace redlock::REDLOCK_ABI

#if BOOST_ASIO_VERSION <= 102600
namespace boost { namespace asio { namespace detail {

/// Asio 1.26 (Boost 1.81) has `*result` instead of `*result.ex_` where a coroutine awaits a
/// deferred operation with the signature `void(std::exception_ptr, T)` (chriskohlhoff/asio, issue
/// 1190). This gives it the meaning that was intended. Later versions do not use it.
template <typename Result>
    requires requires(Result& result) {
        { result.ex_ } -> std::same_as<std::exception_ptr*&>;
        result.value_;
    }
bool operator*(Result& result) noexcept {
    return *result.ex_ != nullptr;
}

}}} // namespace boost::asio::detail
#endif

template <typename CompletionToken, boost::asio::completion_signature... Signatures>
class boost::asio::async_result<redlock::detail::with_diagnostics_t<CompletionToken>, Signatures...>
    : public redlock::detail::unchanged_result<Signatures...> {};
template <typename CompletionToken, typename... Results>
class boost::asio::async_result<
    redlock::detail::with_diagnostics_t<CompletionToken>,
    void(redlock::error_code, Results...)>
    : public redlock::detail::diagnosed_result<true, void(std::exception_ptr, Results...)> {};
template <typename CompletionToken, boost::asio::completion_signature... Signatures>
class boost::asio::
    async_result<redlock::detail::with_diagnostics_to_t<CompletionToken>, Signatures...>
    : public redlock::detail::diagnosed_result<false, Signatures...> {};

template <
    template <typename, typename>
    class Associator,
    redlock::detail::wrapper Handler,
    typename Candidate>
struct boost::asio::associator<Associator, Handler, Candidate>
    : Associator<typename Handler::wrapped_handler, Candidate> {
    using base = Associator<typename Handler::wrapped_handler, Candidate>;
    static auto get(const Handler& from) noexcept { return base::get(from.done); }
    static auto get(const Handler& from, const Candidate& otherwise) noexcept {
        return base::get(from.done, otherwise);
    }
};
