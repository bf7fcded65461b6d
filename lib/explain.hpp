// The sentence that sums an outcome up.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/error.hpp>

#include <string>

namespace redlock::inline REDLOCK_ABI::detail {

/// One sentence on `error`, with the votes that count; empty for success.
std::string message_of(const error_code& error, const diagnostics& votes);

} // namespace redlock::inline REDLOCK_ABI::detail
