#include "explain.hpp"

#include <redlock/with_diagnostics.hpp>

#include <boost/asio/error.hpp>

namespace redlock { inline namespace REDLOCK_ABI {

namespace {

boost::system::system_error with_votes(const error_code& error, const diagnostics& why) {
    std::string text;
    if (!why.resource.empty()) {
        // Not by operator+: g++ 12 warns of overlapping copies there with -O3 (-Wrestrict).
        text.append(1, '\'').append(detail::printable(why.resource)).append(1, '\'');
    }
    // Without an attempt the message may be that of the error, which follows.
    if (!why.message.empty() && (why.attempts > 0 || why.message != error.message())) {
        text.append(text.empty() ? "" : ": ").append(to_string(why));
    }
    return text.empty() ? boost::system::system_error(error)
                        : boost::system::system_error(error, text);
}

} // namespace

error_with_diagnostics::error_with_diagnostics(const error_code& error, diagnostics why)
    : system_error(with_votes(error, why)),
      why_(std::make_shared<const diagnostics>(std::move(why))) {}

std::exception_ptr detail::explained(const error_code& error, diagnostics why) {
    // These errors are decided before an attempt: `why` is from an earlier attempt or empty.
    if (error == errc::would_deadlock || error == boost::asio::error::operation_aborted) {
        why = {};
    }
    return std::make_exception_ptr(error_with_diagnostics(error, std::move(why)));
}

}} // namespace redlock::REDLOCK_ABI
