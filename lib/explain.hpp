// Summarizes an outcome in one sentence, and makes text printable on one line.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/error.hpp>

#include <boost/system/system_error.hpp>

#include <string>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// Text from servers and names of resources go to logs and terminals: it must not end the line or
/// move the cursor.
std::string printable(std::string_view text);

/// Returns `error` as an exception. Its text contains the sentence of `why` about the lock on
/// `resource` if `why` explains the error.
boost::system::system_error
explained(const error_code& error, std::string_view resource, const diagnostics& why);

/// Returns one sentence about `error` with the votes that count; empty for success.
std::string message_of(const error_code& error, const diagnostics& votes);

}}} // namespace redlock::REDLOCK_ABI::detail
