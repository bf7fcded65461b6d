// Values of the file that --config names. A password may be in a wrong line of it, so no message
// repeats one of them.

#pragma once

#include <string>
#include <string_view>

namespace cli {

/// From now on this value is left out of `without_hidden` texts.
void hide(std::string_view value);

/// Replaces what is in quotes by "..." if it is a hidden value, a part of one, or was derived from
/// one.
std::string without_hidden(std::string text);

} // namespace cli
