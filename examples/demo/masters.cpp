#include "masters.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

namespace demo {
namespace {

using namespace std::chrono_literals;

constexpr auto start_limit = 10s;
constexpr int start_attempts_max = 20;

class descriptor {
public:
    explicit descriptor(int number) noexcept : number_(number) {}
    descriptor(const descriptor&) = delete;
    ~descriptor() {
        if (number_ >= 0) {
            ::close(number_);
        }
    }
    int get() const noexcept { return number_; }

private:
    int number_;
};

[[noreturn]] void fail(const char* what) {
    throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return name;
}

bool connects(std::uint16_t port) {
    const descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in name = loopback(port);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
}

bool is_free(std::uint16_t port) {
    const descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in name = loopback(port);
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
}

// Not from the range which the kernel takes for outgoing connections: while the master is down, one
// of them could take its port, even a connection *to* that port.
std::uint16_t free_port() {
    static std::mt19937 random(std::random_device{}());
    std::uniform_int_distribution<int> range(10'000, 32'000);
    for (;;) {
        const auto port = static_cast<std::uint16_t>(range(random));
        if (is_free(port)) {
            return port;
        }
    }
}

// A directory that no longer has a name: a server in it cannot leave a file behind.
int unnamed_directory() {
    auto name = (std::filesystem::temp_directory_path() / "redlock-demo.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
        fail("mkdtemp");
    }
    const int directory = ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::rmdir(name.c_str());
    if (directory < 0) {
        fail("open");
    }
    return directory;
}

std::string server_program() {
    const char* const chosen = std::getenv("REDLOCK_REDIS_SERVER");
    return chosen == nullptr || *chosen == '\0' ? "redis-server" : chosen;
}

} // namespace

masters::masters(std::size_t count) {
    for (int attempt = 0; servers_.size() < count; ++attempt) {
        server started = launch(free_port());
        if (wait_until_up(started)) {
            servers_.push_back(std::move(started));
            attempt = 0;
        } else if (started.process.status() == 127 || attempt == start_attempts_max) {
            throw std::runtime_error(
                fmt::format("{} does not start: {}", server_program(), said_by(started)));
        }
    }
}

std::vector<std::string> masters::urls() const {
    std::vector<std::string> all;
    for (const auto& one : servers_) {
        all.push_back(fmt::format("redis://127.0.0.1:{}", one.port));
    }
    return all;
}

void masters::restart(std::size_t index) {
    auto& old = servers_.at(index);
    old = launch(old.port);
}

masters::server masters::launch(std::uint16_t port) {
    // Everything that allocates comes before the fork: another thread may hold the allocator's
    // lock.
    std::array<std::string, 9> words{
        server_program(),
        "--port",
        std::to_string(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no"};
    std::array<char*, words.size() + 1> argv{};
    for (std::size_t i = 0; i < words.size(); ++i) {
        argv[i] = words[i].data();
    }
    server launched;
    launched.port = port;
    launched.output.reset(std::tmpfile());
    if (launched.output == nullptr) {
        fail("tmpfile");
    }
    const int output = ::fileno(launched.output.get());
    const descriptor directory(unnamed_directory());
    launched.process = child([&] {
        ::dup2(output, STDOUT_FILENO);
        ::dup2(output, STDERR_FILENO);
        if (::fchdir(directory.get()) == 0) {
            // Asio's sockets are inherited: a server that is started during the run must not keep
            // the connections of this process open.
            ::close_range(3, ~0U, 0);
            ::execvp(argv[0], argv.data());
        }
        ::dprintf(STDERR_FILENO, "cannot run %s: %s", argv[0], std::strerror(errno));
        return 127;
    });
    return launched;
}

bool masters::wait_until_up(server& one) {
    const auto limit = std::chrono::steady_clock::now() + start_limit;
    while (one.process.running() && std::chrono::steady_clock::now() < limit) {
        if (connects(one.port)) {
            return one.process.running();
        }
        std::this_thread::sleep_for(5ms);
    }
    return false;
}

std::string masters::said_by(const server& one) {
    std::array<char, 2000> text{};
    const auto size = ::pread(::fileno(one.output.get()), text.data(), text.size(), 0);
    return {text.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

} // namespace demo
