#include "local_server.hpp"

#include "exit_code.hpp"
#include "redis.hpp"
#include "supervisor.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

namespace cli {
namespace {

constexpr int start_attempts_max = 10;
constexpr std::chrono::seconds start_max{10};

std::uint16_t free_port() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    const bool found =
        ::bind(socket, generic, size) == 0 && ::getsockname(socket, generic, &size) == 0;
    ::close(socket);
    if (!found) {
        throw failure(exit_code::internal, "no free port");
    }
    return ntohs(name.sin_port);
}

} // namespace

std::string server_program() {
    if (const char* const chosen = std::getenv("REDLOCK_REDIS_SERVER");
        chosen != nullptr && *chosen != '\0') {
        if (const int error = look_for(chosen); error != 0) {
            throw failure(
                error == ENOENT ? exit_code::not_found : exit_code::not_executable,
                fmt::format(
                    "REDLOCK_REDIS_SERVER is '{}', which cannot be run: {}",
                    printable(chosen),
                    std::strerror(error)));
        }
        return chosen;
    }
    for (const char* name : {"redis-server", "valkey-server"}) {
        if (look_for(name) == 0) {
            return name;
        }
    }
    throw failure(
        exit_code::not_found,
        "neither redis-server nor valkey-server is in the PATH; REDLOCK_REDIS_SERVER may name one");
}

local_server::local_server(
    std::string program, std::string directory, const std::string& key_prefix)
    : program_(std::move(program)),
      directory_(std::move(directory)) {
    for (int i = 0; i < start_attempts_max; ++i) {
        port_ = free_port();
        launch();
        if (now() == state::up) {
            write_record(key_prefix);
            return;
        }
    }
    throw failure(
        exit_code::internal,
        fmt::format(
            "{0} does not start as a Redis or Valkey server; to see why: {0} --port {1}",
            program_,
            port_));
}

local_server::~local_server() {
    kill();
}

local_server::local_server(local_server&& other) noexcept
    : program_(std::move(other.program_)),
      directory_(std::move(other.directory_)),
      port_(other.port_),
      pid_(std::exchange(other.pid_, -1)),
      hung_(other.hung_) {}

std::string local_server::url() const {
    return fmt::format("redis://127.0.0.1:{}", port_);
}

local_server::state local_server::now() noexcept {
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
    }
    return pid_ < 0 ? state::down : hung_ ? state::hung : state::up;
}

void local_server::launch() {
    const std::string port = std::to_string(port_);
    std::array<std::string, 12> words{
        program_,
        "--port",
        port,
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        directory_,
        "--daemonize"};
    std::vector<char*> argv;
    for (std::string& word : words) {
        argv.push_back(word.data());
    }
    std::string no = "no";
    argv.push_back(no.data());
    argv.push_back(nullptr);
    const pid_t parent = ::getpid();
    hung_ = false;
    pid_ = ::fork();
    if (pid_ == 0) {
        // A process group of its own: Ctrl-C is for the tool, whose end then ends the server.
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) {
            ::_exit(1);
        }
        const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
            ::dup2(nothing, number);
        }
        ::execvp(argv[0], argv.data());
        ::_exit(1);
    }
    const auto limit = std::chrono::steady_clock::now() + start_max;
    while (now() == state::up && std::chrono::steady_clock::now() < limit) {
        if (answers()) {
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    kill();
}

// The reply must come from this process, not from another server on that port.
bool local_server::answers() const {
    try {
        redis connection(redlock::endpoint(url()), {});
        return connection.ask({"INFO", "server"}).text.find(fmt::format("process_id:{}\r", pid_))
               != std::string::npos;
    } catch (const connection_error&) {
        return false;
    }
}

// The format is that of lib/core/guarded_scripts.hpp: no data lost since the beginning of time.
void local_server::write_record(const std::string& key_prefix) const {
    try {
        redis connection(redlock::endpoint(url()), {});
        const std::string info = connection.ask({"INFO", "server"}).text;
        constexpr std::string_view field = "run_id:";
        const std::size_t begin = info.find(field) + field.size();
        const std::string run_id = info.substr(begin, info.find('\r', begin) - begin);
        connection.ask({"SET", key_prefix + ":epoch", fmt::format("2 {} - 0 0", run_id)});
    } catch (const connection_error& error) {
        throw failure(
            exit_code::internal,
            fmt::format("{} started, but ended at once: {}", program_, error.what()));
    }
}

void local_server::kill() noexcept {
    if (now() == state::down) {
        return;
    }
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
}

void local_server::hang() noexcept {
    if (now() == state::up) {
        ::kill(pid_, SIGSTOP);
        hung_ = true;
    }
}

void local_server::resume() noexcept {
    if (now() == state::hung) {
        ::kill(pid_, SIGCONT);
        hung_ = false;
    }
}

void local_server::restart() {
    kill();
    launch();
}

} // namespace cli
