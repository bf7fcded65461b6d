// Creates and removes private directories. Removal never throws, because it runs in destructors.
#include "temp_dir.hpp"

#include <stdlib.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {

temp_dir::temp_dir(const std::string& prefix) {
    std::string name = (std::filesystem::temp_directory_path() / (prefix + "XXXXXX")).string();
    if (::mkdtemp(name.data()) == nullptr) {
        throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
    }
    path_ = name;
}

temp_dir::temp_dir(temp_dir&& other) noexcept
    : path_(std::exchange(other.path_, std::filesystem::path())) {}

temp_dir& temp_dir::operator=(temp_dir&& other) noexcept {
    if (this != &other) {
        remove();
        path_ = std::exchange(other.path_, std::filesystem::path());
    }
    return *this;
}

temp_dir::~temp_dir() {
    remove();
}

void temp_dir::remove() noexcept {
    if (!path_.empty()) {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
}

}}}} // namespace redlock::REDLOCK_ABI::testing::process
