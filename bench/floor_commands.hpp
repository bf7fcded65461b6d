// The floor's commands: the same bytes as the library's plain protocol, formatted beforehand.
#pragma once

#include "load.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

// As the library's: 20 bytes in hexadecimal.
inline constexpr std::size_t token_size = 40;

// The release command. Loads its script.
class release_command {
public:
    explicit release_command(const std::vector<address>& masters);

    std::string_view name() const noexcept { return "EVALSHA"; }
    // The returned views refer to the arguments and to this object.
    std::vector<std::string_view> words(std::string_view key, std::string_view token) const {
        return {name(), sha_, "1", key, token};
    }

private:
    std::string sha_;
};

// A formatted command with a place for the token, which is new for each attempt.
class command_template {
public:
    // Requires that `token` is one of `words`.
    command_template(const std::vector<std::string_view>& words, std::string_view token);

    void set_token(std::string_view token) { bytes_.replace(token_at_, token_size, token); }
    std::string_view bytes() const noexcept { return bytes_; }

private:
    std::string bytes_;
    std::size_t token_at_;
};

} // namespace bench
