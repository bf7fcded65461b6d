// The errors of the library as error codes of Boost.System.

#pragma once

#include <redlock/errc.hpp>

#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/error_condition.hpp>

#include <type_traits>

namespace redlock { inline namespace REDLOCK_ABI {

/// The error code type of all operations.
using error_code = boost::system::error_code;

/// The category of `errc`; its name is "redlock". Thread-safe.
const boost::system::error_category& error_category() noexcept;

/// The category of `condition`; its name is "redlock.condition". Thread-safe.
const boost::system::error_category& condition_category() noexcept;

/// An error code of `error`. Found by argument-dependent look-up: `error_code ec =
/// errc::contended;`
inline error_code make_error_code(errc error) noexcept {
    return {static_cast<int>(error), error_category()};
}

/// An error condition of `what`. `ec == condition::not_acquired` uses it.
inline boost::system::error_condition make_error_condition(condition what) noexcept {
    return {static_cast<int>(what), condition_category()};
}

}} // namespace redlock::REDLOCK_ABI

template <>
struct boost::system::is_error_code_enum<redlock::errc> : std::true_type {};
template <>
struct boost::system::is_error_condition_enum<redlock::condition> : std::true_type {};
