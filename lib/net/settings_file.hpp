// Files that the configuration names, and that may be replaced while a manager runs.

#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace redlock::net {

/// A file of the configuration cannot be used. `what()` is for the caller of a constructor,
/// `reason()` for a connection that has failed. Neither contains a part of the file.
class unusable_file : public std::invalid_argument {
public:
    /// `setting`: the name of the member of `config`.
    unusable_file(const char* setting, const std::string& path, const std::string& why)
        : invalid_argument(
            "redlock: cannot use " + std::string(setting) + " '" + path + "': " + why) {}

    const char* reason() const noexcept { return what() + sizeof "redlock: " - 1; }
};

/// Maximum size of such a file.
inline constexpr std::size_t settings_file_max = std::size_t{4} * 1024 * 1024;

/// Returns what is in a regular file. Throws `unusable_file`. Child processes do not inherit the
/// open file.
std::string text_of_file(const char* setting, const std::string& path);

/// Returns the first line of a file, without "\r". Throws `unusable_file`, also if it is empty.
std::string password_of_file(const std::string& path);

} // namespace redlock::net
