// Starting a server is the only part that needs care: the port may be taken between choosing and
// binding it, and then another server may reply there. So a reply counts only from the process that
// was spawned, and a server that could not bind is started anew on other ports.
#include "master_process.hpp"

#include "resp_text.hpp"

#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {
namespace {

constexpr std::chrono::seconds start_limit(10);
constexpr std::chrono::milliseconds poll_interval(10); // a server gives no event when it is ready
constexpr std::chrono::milliseconds probe_timeout(1'000);
constexpr int clashes_max = 10;
constexpr std::size_t log_tail_max = 2'000;

// "Redis server v=7.0.15 sha=..."; 0 when that cannot be read.
int read_major_version(const std::filesystem::path& server) {
    const temp_dir dir;
    const std::filesystem::path output = dir.path() / "version";
    child_process(std::vector<std::string>{server.string(), "--version"}, output).wait();
    const std::string text = read_text(output);
    const std::size_t at = text.find(" v=");
    return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + 3);
}

int major_version(const std::filesystem::path& server) {
    static std::mutex mutex;
    static std::map<std::filesystem::path, int> known;
    const std::lock_guard guard(mutex);
    const auto found = known.find(server);
    return found != known.end() ? found->second
                                : known.emplace(server, read_major_version(server)).first->second;
}

const char* yes_or_no(bool value) {
    return value ? "yes" : "no";
}

boost::asio::ip::address address_of(const master_options& options) {
    return boost::asio::ip::make_address(options.bind);
}

} // namespace

std::filesystem::path find_server_program(const std::string& wanted) {
    if (!wanted.empty()) {
        std::filesystem::path found = find_program(wanted);
        if (found.empty()) {
            throw std::runtime_error("no program to run masters with: " + wanted);
        }
        return found;
    }
    if (const char* given = std::getenv("REDLOCK_REDIS_SERVER"); given != nullptr && *given != 0) {
        std::filesystem::path found = find_program(given);
        if (found.empty()) {
            throw std::runtime_error(
                "REDLOCK_REDIS_SERVER names no program: " + std::string(given));
        }
        return found;
    }
    for (const char* name : {"redis-server", "valkey-server"}) {
        std::filesystem::path found = find_program(name);
        if (!found.empty()) {
            return found;
        }
    }
    throw std::runtime_error("neither redis-server nor valkey-server is in PATH; install one or "
                             "set REDLOCK_REDIS_SERVER");
}

master_process::master_process(master_options options)
    : master_process(std::move(options), no_wait()) {
    wait_until_ready(on_clash::move_on);
}

// Swaps, so that the previous server ends before its directory is removed.
master_process& master_process::operator=(master_process&& other) noexcept {
    std::swap(options_, other.options_);
    std::swap(dir_, other.dir_);
    std::swap(port_, other.port_);
    std::swap(tls_port_, other.tls_port_);
    std::swap(process_, other.process_);
    return *this;
}

master_process::master_process(master_options options, no_wait)
    : options_(std::move(options)),
      port_(address_of(options_)) {
    if (options_.tls_port) {
        tls_port_.emplace(address_of(options_));
    }
    spawn();
}

std::string master_process::url() const {
    const bool v6 = options_.bind.find(':') != std::string::npos;
    return "redis://" + (v6 ? "[" + options_.bind + "]" : options_.bind) + ":"
           + std::to_string(port());
}

std::string master_process::tls_url() const {
    return "rediss://localhost:" + std::to_string(tls_port());
}

std::string master_process::unix_url() const {
    return "unix://" + unix_path().string();
}

std::string master_process::log() const {
    return read_text(dir_.path() / "server.log");
}

std::vector<std::string> master_process::command_line() const {
    const std::filesystem::path server = find_server_program(options_.program);
    const master_options& o = options_;
    std::vector<std::string> line = {server.string()};
    const auto add = [&line](const char* name, std::string value) {
        line.emplace_back(name);
        line.push_back(std::move(value));
    };
    add("--bind", o.bind);
    add("--port", std::to_string(port()));
    add("--dir", data_dir().string());
    add("--daemonize", "no");
    add("--save", "");
    add("--appendonly", yes_or_no(o.appendonly));
    add("--appendfsync", o.appendfsync);
    if (major_version(server) >= 7) { // before Redis 7, DEBUG is always allowed
        add("--enable-debug-command", "local");
    }
    if (o.unix_socket) {
        add("--unixsocket", unix_path().string());
        add("--unixsocketperm", "700");
    }
    if (o.tls_port) {
        add("--tls-port", std::to_string(tls_port()));
        add("--tls-cert-file", o.tls_port->certificate.string());
        add("--tls-key-file", o.tls_port->key.string());
        add("--tls-ca-cert-file", o.tls_port->ca.string());
        add("--tls-auth-clients", yes_or_no(o.tls_auth_clients));
    }
    if (!o.maxmemory.empty()) {
        add("--maxmemory", o.maxmemory);
    }
    if (!o.maxmemory_policy.empty()) {
        add("--maxmemory-policy", o.maxmemory_policy);
    }
    if (!o.requirepass.empty()) {
        add("--requirepass", o.requirepass);
    }
    line.insert(line.end(), o.extra.begin(), o.extra.end());
    return line;
}

void master_process::spawn() {
    std::filesystem::create_directories(data_dir());
    process_ = child_process(command_line(), dir_.path() / "server.log");
}

void master_process::wait_until_ready(on_clash policy, ready when) {
    const auto deadline = std::chrono::steady_clock::now() + start_limit;
    int clashes = 0;
    while (!answers(when)) {
        if (!process_.running()) {
            const std::string text = log();
            const bool clash = text.find("Address already in use") != std::string::npos;
            if (!clash || policy == on_clash::insist || ++clashes > clashes_max) {
                const std::size_t cut = text.size() > log_tail_max ? text.size() - log_tail_max : 0;
                throw std::runtime_error("the server ended at its start:\n" + text.substr(cut));
            }
            port_ = free_port(address_of(options_));
            if (tls_port_) {
                tls_port_.emplace(address_of(options_));
            }
            spawn();
        } else if (std::chrono::steady_clock::now() >= deadline) {
            throw std::runtime_error("the server did not answer PING in time:\n" + log());
        }
        std::this_thread::sleep_for(poll_interval);
    }
}

// An error reply is a reply; the reply of another process is not.
bool master_process::answers(ready when) const {
    try {
        resp_client client(options_.bind, port(), probe_timeout);
        if (!options_.requirepass.empty()) {
            client.command({"AUTH", options_.requirepass});
        }
        const std::string pong = client.command({"PING"});
        if (when == ready::loaded && pong.starts_with("(error) LOADING")) {
            return false;
        }
        const std::string info = client.command({"INFO", "server"});
        constexpr std::string_view field = "\nprocess_id:";
        const std::size_t at = info.find(field);
        return at == std::string::npos || std::atoi(info.c_str() + at + field.size()) == pid();
    } catch (const std::runtime_error&) {
        return false;
    }
}

void master_process::restart(ready when) {
    kill();
    spawn();
    wait_until_ready(on_clash::insist, when);
}

void master_process::restart_empty() {
    kill();
    std::filesystem::remove_all(data_dir());
    restart();
}

void master_process::remove_files() noexcept {
    std::error_code ignored;
    std::filesystem::remove_all(dir_.path(), ignored);
}

std::vector<master_process> start_masters(std::size_t count, const master_options& options) {
    std::vector<master_process> servers;
    for (std::size_t i = 0; i < count; ++i) {
        servers.emplace_back(options, master_process::no_wait());
    }
    for (master_process& one : servers) {
        one.wait_until_ready();
    }
    return servers;
}

std::string master_process::command(const std::vector<std::string>& args) const {
    resp_client client(options_.bind, port());
    if (!options_.requirepass.empty()) {
        client.command({"AUTH", options_.requirepass});
    }
    return client.command(args);
}

void master_process::declare_new(const std::string& key_prefix) const {
    const std::string info = command({"INFO", "server"});
    constexpr std::string_view field = "\nrun_id:";
    const std::size_t at = info.find(field);
    if (at == std::string::npos) {
        throw std::runtime_error("INFO has no run_id: " + info);
    }
    const std::size_t begin = at + field.size();
    const std::string run_id = info.substr(begin, info.find_first_of("\r\n", begin) - begin);
    // A record with memory since 1970 and no quarantine; the format is in
    // lib/core/bytes/guarded_scripts.hpp.
    const std::string said = command({"SET", key_prefix + ":epoch", "4 " + run_id + " - 0 0 0"});
    if (said != "OK") {
        throw std::runtime_error("the record is refused: " + said);
    }
}

std::vector<std::string> master_process::keys(const std::string& pattern) const {
    resp_client client(options_.bind, port());
    if (!options_.requirepass.empty()) {
        client.command({"AUTH", options_.requirepass});
    }
    return client.list({"KEYS", pattern});
}

}}}} // namespace redlock::REDLOCK_ABI::testing::process
