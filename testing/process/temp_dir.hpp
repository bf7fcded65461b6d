// A private directory that is removed with its object, for files of a test such as certificates or
// the data of a server. It is removed even if the test fails.
#pragma once

#include <redlock/version.hpp>

#include <filesystem>
#include <string>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {

class temp_dir {
public:
    // Creates <system's temporary directory>/<prefix>XXXXXX. Throws std::system_error.
    explicit temp_dir(const std::string& prefix = "redlock-test-");
    temp_dir(temp_dir&& other) noexcept;
    temp_dir& operator=(temp_dir&& other) noexcept;
    ~temp_dir();

    const std::filesystem::path& path() const noexcept { return path_; }

private:
    void remove() noexcept;

    std::filesystem::path path_; // empty when moved from
};

}}}} // namespace redlock::REDLOCK_ABI::testing::process
