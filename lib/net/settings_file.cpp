#include "settings_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace redlock::net {

std::string text_of_file(const char* setting, const std::string& path) {
    std::string out;
    std::array<char, 16'384> part{};
    struct stat found {};
    ssize_t size = 0;
    // A pipe without a writer would block the loop.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool opened = file >= 0 && ::fstat(file, &found) == 0;
    const bool regular = opened && S_ISREG(found.st_mode);
    while (regular && out.size() <= settings_file_max
           && (size = ::read(file, part.data(), part.size())) > 0) {
        out.append(part.data(), static_cast<std::size_t>(size));
    }
    const int error = !opened || size < 0 ? errno : 0;
    if (file >= 0) {
        ::close(file);
    }
    if (error != 0) {
        throw unusable_file(setting, path, std::generic_category().message(error));
    }
    if (!regular || out.size() > settings_file_max) {
        throw unusable_file(setting, path, regular ? "it is too large" : "not a regular file");
    }
    return out;
}

std::string password_of_file(const std::string& path) {
    std::string line = text_of_file("password_file", path);
    line.resize(line.find('\n') == std::string::npos ? line.size() : line.find('\n'));
    if (line.ends_with('\r')) {
        line.pop_back();
    }
    if (line.empty()) {
        throw unusable_file("password_file", path, "its first line is empty");
    }
    return line;
}

} // namespace redlock::net
