// SHA-1, which identifies scripts. Security does not depend on its strength here.

#pragma once

#include <redlock/version.hpp>

#include <string>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

/// Returns the digest as 40 lowercase hexadecimal digits.
std::string sha1_hex(std::string_view text);

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
