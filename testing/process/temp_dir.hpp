// A private directory that lives as long as its object: what a test writes, certificates or a
// server's data, goes here and is gone afterwards, also when the test fails.
#pragma once

#include <redlock/version.hpp>

#include <filesystem>
#include <string>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {

class temp_dir {
public:
    // Makes <system's temporary directory>/<prefix>XXXXXX. Throws std::system_error.
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
