// The errors of the library as Boost.System error codes.

#pragma once

#include <redlock/errc.hpp>

#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/error_condition.hpp>

#include <type_traits>

namespace redlock { inline namespace REDLOCK_ABI {

/// The error code type of all operations.
using error_code = boost::system::error_code;

/// Returns the category of `errc`, named "redlock". Thread-safe.
const boost::system::error_category& error_category() noexcept;

/// Converts `error` to an error code. Enables `error_code ec = errc::contended;`.
inline error_code make_error_code(errc error) noexcept {
    return {static_cast<int>(error), error_category()};
}

/// Converts `what` to an error condition. Enables `ec == condition::not_acquired`.
boost::system::error_condition make_error_condition(condition what) noexcept;

}} // namespace redlock::REDLOCK_ABI

template <>
struct boost::system::is_error_code_enum<redlock::errc> : std::true_type {};
template <>
struct boost::system::is_error_condition_enum<redlock::condition> : std::true_type {};
