// Adapts a caller's handler to another signature. The adapter has the executor, the allocator and
// the cancellation slot that are associated with the caller's handler.

#pragma once

#include <redlock/version.hpp>

#include <boost/asio/associator.hpp>

#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

template <typename Handler, typename F>
struct adapted {
    Handler done;
    F f;

    /// Calls `f` with the caller's handler and the results.
    template <typename... Results>
    void operator()(Results&&... results) {
        std::move(f)(std::move(done), std::forward<Results>(results)...);
    }
};

/// `f` receives the handler and the results, and calls the handler.
template <typename Handler, typename F>
adapted<Handler, F> adapt(Handler done, F f) {
    return {std::move(done), std::move(f)};
}

}}} // namespace redlock::REDLOCK_ABI::detail

template <
    template <typename, typename>
    class Associator,
    typename Handler,
    typename F,
    typename Candidate>
struct boost::asio::associator<Associator, redlock::detail::adapted<Handler, F>, Candidate>
    : Associator<Handler, Candidate> {
    static auto get(const redlock::detail::adapted<Handler, F>& from) noexcept {
        return Associator<Handler, Candidate>::get(from.done);
    }
    static auto
    get(const redlock::detail::adapted<Handler, F>& from, const Candidate& otherwise) noexcept {
        return Associator<Handler, Candidate>::get(from.done, otherwise);
    }
};
