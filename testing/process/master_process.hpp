// Real Redis masters, one or a quorum of them, as child processes on loopback: tests kill, hang and
// restart them as they like, and look at their keys from outside. Nothing survives the objects,
// neither a process nor a file (see child_process.hpp for the thread that should spawn them).
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
    std::string program; // empty: find_server_program
    std::string bind = "127.0.0.1";
    bool unix_socket = false;
    std::optional<tls_paths> tls_port; // one beside the plain one
    bool tls_auth_clients = false;     // it asks for a certificate of the authority
    bool appendonly = false;
    std::string appendfsync = "everysec";
    std::string maxmemory;
    std::string maxmemory_policy;
    std::string requirepass;
    std::vector<std::string> extra; // appended to the command line: {"--databases", "4"}
};

// What is wanted, else the environment's REDLOCK_REDIS_SERVER, else redis-server, else
// valkey-server in PATH. Throws std::runtime_error when there is none.
std::filesystem::path find_server_program(const std::string& wanted = {});

class master_process {
public:
    // Returns when the server answers and has loaded its data. Throws std::runtime_error, with the
    // end of the server's log, when it does not within 10 s.
    explicit master_process(master_options options = {});

    // The same in two steps, so that several start at the same time.
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
    pid_t pid() const noexcept { return process_.pid(); }  // -1 when it is down
    bool running() noexcept { return process_.running(); } // a hung one runs
    std::string log() const;

    void hang() { process_.stop(); }          // SIGSTOP: connections stay, answers do not come
    void resume() { process_.resume(); }      // SIGCONT
    void kill() noexcept { process_.kill(); } // SIGKILL

    // Killed if it runs; same ports; data only if it was persisted. Returns when that is loaded, or
    // already when the server answers, if only -LOADING.
    enum class ready { loaded, answers };
    void restart(ready when = ready::loaded);
    void restart_empty(); // the same with the data wiped

    // One command on a connection of its own, with the password if there is one; the answer as
    // resp_text gives it. Throws std::runtime_error when none comes within 5 s.
    std::string command(const std::vector<std::string>& args) const;
    std::vector<std::string> keys(const std::string& pattern = "*") const;

    // Writes the record of a server on which no lock with that prefix can have been: guarded
    // clients count its votes at once. A restart begins a quarantine as ever.
    void declare_new(const std::string& key_prefix = "redlock:") const;

private:
    void spawn();
    enum class on_clash { move_on, insist }; // when somebody else listens on our port
    void wait_until_ready(on_clash policy, ready when = ready::loaded);
    bool answers(ready when) const;
    std::filesystem::path data_dir() const { return dir_.path() / "data"; }
    std::vector<std::string> command_line() const;

    master_options options_;
    temp_dir dir_{"redlock-master-"};
    free_port port_;
    std::optional<free_port> tls_port_;
    child_process process_; // after the directory and the ports: it ends before they go
};

}}}} // namespace redlock::REDLOCK_ABI::testing::process
