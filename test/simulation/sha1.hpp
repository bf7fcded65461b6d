// SHA-1, which names scripts; nothing here rests on its strength.

#pragma once

#include <string>
#include <string_view>

namespace simulation {

/// 40 hexadecimal digits, lower case.
std::string sha1_hex(std::string_view text);

} // namespace simulation
