// Starting, watching and ending the redis-servers.
#include "masters.hpp"

#include "wire.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace bench {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto start_limit = 10s;
constexpr int start_attempts_max = 5;

class temporary_directory {
public:
    temporary_directory() {
        auto name = (std::filesystem::temp_directory_path() / "quorum_bench.XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error(fmt::format("mkdtemp {}: {}", name, std::strerror(errno)));
        }
        path_ = name;
    }
    temporary_directory(const temporary_directory&) = delete;
    ~temporary_directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

// A port that nobody listens on now. Somebody else may take it before the server does, so the
// caller tries again with another one.
std::uint16_t free_port() {
    const descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    if (!socket || ::bind(socket.get(), generic, size) != 0
        || ::getsockname(socket.get(), generic, &size) != 0) {
        throw std::runtime_error(fmt::format("no free port: {}", std::strerror(errno)));
    }
    return ntohs(name.sin_port);
}

std::string read_all(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

// The answer must come from the process that was started, not from another server on that port.
bool answers(const address& master, pid_t expected) {
    try {
        blocking_connection connection(master, 500ms);
        return connection.command({"PING"}) == "+PONG"
               && info_field(connection.command({"INFO", "server"}), "process_id")
                      == std::to_string(expected);
    } catch (const std::runtime_error&) {
        return false;
    }
}

} // namespace

child_process::child_process(
    const std::vector<std::string>& words, const std::string& output_file) {
    std::vector<char*> argv;
    for (const auto& word : words) {
        argv.push_back(const_cast<char*>(word.c_str()));
    }
    argv.push_back(nullptr);
    const descriptor output(
        ::open(output_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) {
        throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
    }
    if (pid_ == 0) {
        // Its own group: Ctrl-C is for this program, whose end then ends the server.
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) {
            ::_exit(126);
        }
        ::dup2(output.get(), STDOUT_FILENO);
        ::dup2(output.get(), STDERR_FILENO);
        ::execvp(argv[0], argv.data());
        ::dprintf(STDERR_FILENO, "cannot run %s: %s\n", argv[0], std::strerror(errno));
        ::_exit(127);
    }
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)) {}

child_process& child_process::operator=(child_process&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
}

child_process::~child_process() {
    kill();
}

bool child_process::running() noexcept {
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
    }
    return pid_ > 0;
}

void child_process::signal(int number) noexcept {
    if (running()) {
        ::kill(pid_, number);
    }
}

void child_process::kill() noexcept {
    if (running()) {
        ::kill(pid_, SIGKILL);
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
        pid_ = -1;
    }
}

masters::masters(std::size_t count, const std::string& program) {
    // Removed when all servers are up: they write no file, and their output stays open.
    const temporary_directory directory;
    for (std::size_t i = 0; i < count; ++i) {
        start(i, program, directory.path().string());
    }
}

void masters::start(std::size_t index, const std::string& program, const std::string& directory) {
    std::string said;
    for (int attempt = 0; attempt < start_attempts_max; ++attempt) {
        const std::uint16_t port = free_port();
        const auto output_file = fmt::format("{}/{}-{}.log", directory, index, attempt);
        child_process server(
            {program,
             "--port",
             std::to_string(port),
             "--bind",
             "127.0.0.1",
             "--save",
             "",
             "--appendonly",
             "no",
             "--dir",
             directory,
             "--daemonize",
             "no",
             "--logfile",
             ""},
            output_file);
        const address master{"127.0.0.1", port};
        const auto limit = clock::now() + start_limit;
        while (server.running() && clock::now() < limit) {
            if (answers(master, server.id())) {
                addresses_.push_back(master);
                processes_.push_back(std::move(server));
                return;
            }
            std::this_thread::sleep_for(5ms);
        }
        said = read_all(output_file);
    }
    throw std::runtime_error(fmt::format("{} does not start: {}", program, said));
}

void masters::kill(std::size_t index) {
    processes_.at(index).kill();
}

void masters::hang(std::size_t index) {
    processes_.at(index).signal(SIGSTOP);
}

void masters::resume(std::size_t index) {
    processes_.at(index).signal(SIGCONT);
}

} // namespace bench
