// The error code of what is thrown.
#pragma once

#include <redlock/error.hpp>

#include <boost/system/system_error.hpp>

#include <exception>

namespace redlock::test {

/// The error that `f` throws; none if it returns.
template <typename F>
error_code error_of(F f) {
    try {
        f();
    } catch (const boost::system::system_error& thrown) {
        return thrown.code();
    }
    return {};
}

/// The error in it; none if it is null.
inline error_code error_of(const std::exception_ptr& thrown) {
    return error_of([&] { thrown ? std::rethrow_exception(thrown) : void(); });
}

} // namespace redlock::test
