#include "disrupted_master.hpp"
#include "process/master_process.hpp"

#include <redlock/testing.hpp>

#include <stdexcept>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing {

struct real_master::child final : server {
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

real_master::real_master(std::shared_ptr<child> started) noexcept : master(std::move(started)) {}

real_master::child& real_master::started() const {
    return static_cast<child&>(*server_);
}

std::string real_master::url() const {
    return started().is_by_socket ? started().process.unix_url() : started().process.url();
}

bool real_master::running() const {
    return started().process.running();
}

void real_master::declare_new(std::string_view key_prefix) {
    started().process.declare_new(std::string(key_prefix));
}

masters::masters(std::size_t count, const master_options& options) : password_(options.password) {
    const process::master_options each = to_process_options(options);
    all_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        all_.push_back(
            real_master(std::make_shared<real_master::child>(each, options.unix_socket)));
    }
    for (const real_master& one : all_) {
        one.started().process.wait_until_ready();
    }
}

std::vector<std::string> masters::urls() const {
    std::vector<std::string> result;
    for (const real_master& one : all_) {
        result.push_back(one.url());
    }
    return result;
}

config masters::make_config() const {
    config made;
    for (const real_master& one : all_) {
        made.masters.emplace_back(one.url());
    }
    made.password = password_;
    made.quarantine = false;
    made.master_timeout = std::chrono::seconds(2);
    made.connect_timeout = std::chrono::seconds(5);
    made.reconnect_delay_max = std::chrono::milliseconds(100);
    return made;
}

}}} // namespace redlock::REDLOCK_ABI::testing
