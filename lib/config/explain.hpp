// Summarizes an outcome in one sentence, and makes text printable on one line.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/error.hpp>

#include <string>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// Text from servers and names of resources go to logs and terminals: it must not end the line or
/// move the cursor.
std::string printable(std::string_view text);

/// Returns one sentence about `error` with the votes that count; empty for success.
std::string message_of(const error_code& error, const diagnostics& votes);

}}} // namespace redlock::REDLOCK_ABI::detail
