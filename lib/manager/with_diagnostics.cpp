#include "config/explain.hpp"

#include <redlock/with_diagnostics.hpp>

#include <boost/asio/error.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace {

constexpr std::size_t name_shown = 80; // bytes of a name, which may have a thousand

struct explanation : diagnostics {
    std::string text;
};

std::shared_ptr<const diagnostics> with_text(const error_code& error, diagnostics why) {
    std::string text;
    if (!why.resource.empty()) {
        // Not by operator+: g++ 12 warns of overlapping copies there with -O3 (-Wrestrict).
        const std::string_view name = why.resource;
        text.append(1, '\'').append(detail::printable(name.substr(0, name_shown)));
        text.append(name.size() > name_shown ? "...': " : "': ");
    }
    // Without an attempt no master was asked, and the message may be that of the error.
    const bool unasked = why.attempts == 0 && why.message == error.message();
    text.append(why.message.empty() || unasked ? error.message() : to_string(why));
    text.append(" [").append(error.category().name()).append(":");
    text.append(std::to_string(error.value())).append("]");
    return std::make_shared<const explanation>(explanation{std::move(why), std::move(text)});
}

} // namespace

error_with_diagnostics::error_with_diagnostics(const error_code& error, diagnostics why)
    : system_error(error),
      why_(with_text(error, std::move(why))) {}

const char* error_with_diagnostics::what() const noexcept {
    return static_cast<const explanation&>(*why_).text.c_str();
}

std::exception_ptr detail::explained(const error_code& error, diagnostics why) {
    // It may have been stopped before its attempt: `why` is of an earlier one or empty.
    if (error == boost::asio::error::operation_aborted) {
        why = {};
    }
    return std::make_exception_ptr(error_with_diagnostics(error, std::move(why)));
}

}} // namespace redlock::REDLOCK_ABI
