// The real masters of the testing kit, with TLS and as a quorum.
#pragma once

#include "process.hpp"
#include "process/master_process.hpp"
#include "tls_files.hpp"

namespace redlock::test {

using testing::process::find_server_program;

struct master_options : testing::process::master_options {
    bool tls = false;                              // a TLS port next to the plain one
    std::shared_ptr<const tls_files> certificates; // none: made when tls asks for them
};

class master_process : public testing::process::master_process {
public:
    explicit master_process(master_options options = {});
    master_process(master_options options, no_wait);

    const tls_files& certificates() const { return *certificates_; }

private:
    std::shared_ptr<const tls_files> certificates_;
};

// N masters that know nothing of each other, started at the same time. With TLS they share one
// authority.
class quorum_of_masters {
public:
    explicit quorum_of_masters(std::size_t n, master_options options = {});

    master_process& operator[](std::size_t i) { return masters_.at(i); }
    const master_process& operator[](std::size_t i) const { return masters_.at(i); }
    std::size_t size() const noexcept { return masters_.size(); }
    auto begin() noexcept { return masters_.begin(); }
    auto end() noexcept { return masters_.end(); }

    std::vector<std::string> urls() const;

    // How many keys match, on all masters that are up together.
    std::size_t total_keys(const std::string& pattern = "*");

private:
    std::vector<master_process> masters_;
};

} // namespace redlock::test
