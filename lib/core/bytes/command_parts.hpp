// Numbers and script calls as arguments of commands.

#pragma once

#include "command.hpp"
#include "scripts.hpp"

#include <charconv>
#include <cstddef>
#include <string_view>

namespace redlock::core {

/// A number as an argument.
class decimal {
public:
    template <typename Integer>
    explicit decimal(Integer value) noexcept
        : size_(static_cast<std::size_t>(
            std::to_chars(text_, text_ + sizeof text_, value).ptr - text_)) {}
    // NOLINTNEXTLINE(google-explicit-constructor): it is an argument like the others
    operator std::string_view() const noexcept { return {text_, size_}; }

private:
    char text_[24];
    std::size_t size_;
};

/// \name The two words that begin the call of a script
/// \{
inline std::string_view verb(command_variant how) noexcept {
    return how == command_variant::evalsha ? "EVALSHA" : "EVAL";
}
inline std::string_view body(command_variant how, const script& what) noexcept {
    return how == command_variant::evalsha ? what.sha1 : what.text;
}
/// \}

} // namespace redlock::core
