#include "process/master_process.hpp"

#include <redlock/testing.hpp>

#include <stdexcept>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing {

struct master::state {
    process::master_process server;
    bool by_socket;
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

master::master(std::unique_ptr<state> made) noexcept : state_(std::move(made)) {}
master::master(master&&) noexcept = default;
master::~master() = default;

std::string master::url() const {
    return state_->by_socket ? state_->server.unix_url() : state_->server.url();
}

bool master::running() {
    return state_->server.running();
}

void master::kill() noexcept {
    state_->server.kill();
}

void master::restart() {
    state_->server.restart();
}

void master::restart_empty() {
    state_->server.restart_empty();
}

void master::hang() {
    state_->server.hang();
}

void master::resume() {
    state_->server.resume();
}

void master::pause(std::chrono::milliseconds span) {
    command({"CLIENT", "PAUSE", std::to_string(span.count()), "ALL"});
}

void master::flush() {
    command({"FLUSHALL"});
}

void master::cut() {
    command({"CLIENT", "KILL", "TYPE", "normal"});
    command({"CLIENT", "KILL", "TYPE", "pubsub"});
}

void master::declare_new(std::string_view key_prefix) {
    state_->server.declare_new(std::string(key_prefix));
}

std::string master::command(const std::vector<std::string>& words) const {
    return state_->server.command(words);
}

std::string master::log() const {
    return state_->server.log();
}

masters::masters(std::size_t count, const master_options& options) : password_(options.password) {
    const process::master_options each = to_process_options(options);
    all_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        all_.push_back(master(std::make_unique<master::state>(master::state{
            process::master_process(each, process::master_process::no_wait()),
            options.unix_socket})));
    }
    for (master& one : all_) {
        one.state_->server.wait_until_ready();
    }
}

std::vector<std::string> masters::urls() const {
    std::vector<std::string> result;
    for (const master& one : all_) {
        result.push_back(one.url());
    }
    return result;
}

config masters::make_config() const {
    config made;
    for (const master& one : all_) {
        made.masters.emplace_back(one.url());
    }
    made.password = password_;
    made.quarantine = quarantine::off;
    made.master_timeout = std::chrono::seconds(2);
    made.connect_timeout = std::chrono::seconds(5);
    made.reconnect_delay_min = std::chrono::milliseconds(10);
    made.reconnect_delay_max = std::chrono::milliseconds(100);
    return made;
}

}}} // namespace redlock::REDLOCK_ABI::testing
