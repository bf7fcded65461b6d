#include "master_process.hpp"

namespace redlock::test {
namespace {

master_options with_certificates(master_options options) {
    if (options.tls && !options.certificates) {
        options.certificates = std::make_shared<const tls_files>();
    }
    if (options.tls) {
        const tls_files& files = *options.certificates;
        options.tls_port = {files.server_certificate(), files.server_key(), files.ca()};
    }
    return options;
}

} // namespace

master_process::master_process(master_options options)
    : master_process(std::move(options), no_wait()) {
    wait_until_ready();
}

master_process::master_process(master_options options, no_wait how)
    : testing::process::master_process(options = with_certificates(std::move(options)), how),
      certificates_(std::move(options.certificates)) {}

quorum_of_masters::quorum_of_masters(std::size_t n, master_options options) {
    options = with_certificates(std::move(options));
    masters_.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
        masters_.push_back(master_process(options, master_process::no_wait()));
    }
    for (master_process& master : masters_) {
        master.wait_until_ready();
    }
}

std::vector<std::string> quorum_of_masters::urls() const {
    std::vector<std::string> result;
    for (const master_process& master : masters_) {
        result.push_back(master.url());
    }
    return result;
}

std::size_t quorum_of_masters::total_keys(const std::string& pattern) {
    std::size_t found = 0;
    for (master_process& master : masters_) {
        found += master.running() ? master.keys(pattern).size() : 0;
    }
    return found;
}

} // namespace redlock::test
