#include "disrupted_master.hpp"
#include "process/master_process.hpp"

#include <redlock/testing.hpp>

#include <stdexcept>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing {

struct masters::child final : master::server {
    child(process::master_options options, bool by_socket)
        : process(std::move(options), process::master_process::no_wait()),
          is_by_socket(by_socket) {}

    void kill() override { process.kill(); }
    void restart(bool keeps_data) override {
        keeps_data ? process.restart() : process.restart_empty();
    }
    void hang() override { process.hang(); }
    void resume() override { process.resume(); }
    void cut() override {
        command({"CLIENT", "KILL", "TYPE", "normal"});
        command({"CLIENT", "KILL", "TYPE", "pubsub"});
    }
    std::string command(const std::vector<std::string>& words) override {
        return process.command(words);
    }

    std::string url() const { return is_by_socket ? process.unix_url() : process.url(); }

    process::master_process process;
    const bool is_by_socket;
};

namespace {

process::master_options to_process_options(const master_options& given) {
    process::master_options options;
    options.program = given.program;
    options.unix_socket = given.unix_socket;
    options.appendonly = given.durable;
    options.appendfsync = "always";
    options.requirepass = given.password;
    options.extra = given.arguments;
    return options;
}

} // namespace

void master::kill() {
    server_->kill();
}

void master::restart() {
    server_->restart(true);
}

void master::restart_empty() {
    server_->restart(false);
}

void master::hang() {
    server_->hang();
}

void master::resume() {
    server_->resume();
}

void master::flush() {
    command({"FLUSHALL"});
}

void master::cut() {
    server_->cut();
}

std::string master::command(const std::vector<std::string>& words) const {
    if (words.empty()) {
        throw std::runtime_error("a command needs a word at least");
    }
    return server_->command(words);
}

masters::child& masters::child_of(const master& one) {
    return static_cast<child&>(*one.server_);
}

masters::masters(std::size_t count, const master_options& options) : password_(options.password) {
    const process::master_options each = to_process_options(options);
    all_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        all_.push_back(master(std::make_shared<child>(each, options.unix_socket)));
    }
    for (const master& one : all_) {
        child_of(one).process.wait_until_ready();
    }
}

std::vector<std::string> masters::urls() const {
    std::vector<std::string> result;
    for (const master& one : all_) {
        result.push_back(child_of(one).url());
    }
    return result;
}

void masters::declare_new(std::string_view key_prefix) {
    for (const master& one : all_) {
        child_of(one).process.declare_new(std::string(key_prefix));
    }
}

config masters::make_config() const {
    config made;
    for (const std::string& url : urls()) {
        made.masters.emplace_back(url);
    }
    made.password = password_;
    made.quarantine = false;
    made.master_timeout = std::chrono::seconds(2);
    made.connect_timeout = std::chrono::seconds(5);
    made.reconnect_delay_max = std::chrono::milliseconds(100);
    return made;
}

}}} // namespace redlock::REDLOCK_ABI::testing
