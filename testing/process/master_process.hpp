// Real Redis masters, one or a quorum of them, as child processes on the loopback interface. Tests
// kill, hang and restart them, and inspect their keys. Processes end and files are removed with the
// objects. See child_process.hpp for the thread that must start them.
#pragma once

#include "child_process.hpp"
#include "free_port.hpp"
#include "temp_dir.hpp"

#include <redlock/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {

struct tls_paths {
    std::filesystem::path certificate;
    std::filesystem::path key;
    std::filesystem::path ca;
};

struct master_options {
    std::string program; // empty: the result of find_server_program
    std::string bind = "127.0.0.1";
    bool unix_socket = false;
    std::optional<tls_paths> tls_port; // in addition to the plain port
    bool tls_auth_clients = false;     // requires a certificate of the authority
    bool appendonly = false;
    std::string appendfsync = "everysec";
    std::string maxmemory;
    std::string maxmemory_policy;
    std::string requirepass;
    std::vector<std::string> extra; // appended to the command line: {"--databases", "4"}
};

// Returns `wanted`, else the environment variable REDLOCK_REDIS_SERVER, else redis-server, else
// valkey-server from PATH. Throws std::runtime_error if there is no such program.
std::filesystem::path find_server_program(const std::string& wanted = {});

class master_process {
public:
    // Returns when the server replies and has loaded its data. Throws std::runtime_error with the
    // end of the server's log if this takes more than 10 s.
    explicit master_process(master_options options = {});

    // The same in two steps, so that several servers start at the same time.
    struct no_wait {};
    master_process(master_options options, no_wait);
    void wait_until_ready() { wait_until_ready(on_clash::move_on); }

    master_process(master_process&&) noexcept = default;
    master_process& operator=(master_process&& other) noexcept;

    std::string url() const;      // redis://127.0.0.1:port
    std::string tls_url() const;  // rediss://localhost:port, the name in the certificate
    std::string unix_url() const; // unix:///path
    std::uint16_t port() const noexcept { return port_.number(); }
    std::uint16_t tls_port() const noexcept { return tls_port_ ? tls_port_->number() : 0; }
    std::filesystem::path unix_path() const { return dir_.path() / "server.sock"; }
    pid_t pid() const noexcept { return process_.pid(); }  // -1 if it is down
    bool running() noexcept { return process_.running(); } // true even if it hangs
    std::string log() const;

    bool hung() const noexcept { return process_.stopped(); }
    void hang() { process_.stop(); }          // SIGSTOP: connections stay open, without replies
    void resume() { process_.resume(); }      // SIGCONT
    void kill() noexcept { process_.kill(); } // SIGKILL

    // Kills the server if it is running, and starts it again on the same ports. Data is kept only
    // if it was persisted. Returns when the data is loaded, or with `answers` when the server
    // replies, even if only with -LOADING.
    enum class ready { loaded, answers };
    void restart(ready when = ready::loaded);
    void restart_empty(); // also removes the data
    // Removes its directory, so that no file stays if this process is killed. Without persistence
    // the server then writes only its log, which stays open.
    void remove_files() noexcept;

    // Executes one command on a separate connection, with the password if there is one. Returns the
    // reply in the format of resp_text. Throws std::runtime_error if there is no reply within 5 s.
    std::string command(const std::vector<std::string>& args) const;
    std::vector<std::string> keys(const std::string& pattern = "*") const;

    // Writes the memory record of a server on which no lock with this prefix can have been, so that
    // guarded clients count its votes at once. A restart starts a quarantine as usual.
    void declare_new(const std::string& key_prefix = "redlock:") const;

private:
    void spawn();
    enum class on_clash { move_on, insist }; // if another process listens on the port
    void wait_until_ready(on_clash policy, ready when = ready::loaded);
    bool answers(ready when) const;
    std::filesystem::path data_dir() const { return dir_.path() / "data"; }
    std::vector<std::string> command_line() const;

    master_options options_;
    temp_dir dir_{"redlock-master-"};
    free_port port_;
    std::optional<free_port> tls_port_;
    child_process process_; // after the directory and the ports: destroyed before them
};

// Starts `count` servers at the same time, and returns when all of them reply.
std::vector<master_process> start_masters(std::size_t count, const master_options& options = {});

}}}} // namespace redlock::REDLOCK_ABI::testing::process
