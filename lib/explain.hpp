// The sentence that sums an outcome up, and what may stand in a line.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/error.hpp>

#include <string>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// Text of others - servers, resources' names - goes to logs and terminals: nothing in it may end
/// the line or move the cursor.
std::string printable(std::string_view text);

/// Throws `error` as a `system_error` whose text has `why`, told of the lock on `resource`, where
/// that explains it.
[[noreturn]] void
throw_explained(const error_code& error, std::string_view resource, const diagnostics& why);

/// One sentence on `error`, with the votes that count; empty for success.
std::string message_of(const error_code& error, const diagnostics& votes);

}}} // namespace redlock::REDLOCK_ABI::detail
