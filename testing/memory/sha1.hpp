// SHA-1, which names scripts; nothing here rests on its strength.

#pragma once

#include <redlock/version.hpp>

#include <string>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

/// 40 hexadecimal digits, lower case.
std::string sha1_hex(std::string_view text);

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
