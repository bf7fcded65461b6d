#include "local.hpp"

#include "command_line.hpp"
#include "exit_code.hpp"
#include "options.hpp"
#include "process/master_process.hpp"
#include "session.hpp"
#include "supervisor.hpp"

#include <redlock/lock_manager.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>

namespace cli {
namespace {

using redlock::testing::process::master_process;

constexpr std::size_t masters_max = 32;
constexpr milliseconds glance{200};

struct wishes {
    std::size_t count = 5;
    std::string faults = "none";
    milliseconds every{3'000};
};

enum class state { up, hung, down };

// Also notices that another process has ended it.
state state_of(master_process& one) noexcept {
    return !one.running() ? state::down : one.hung() ? state::hung : state::up;
}

// The directory of all servers' files. Another process removes it when this one has ended, however
// that happened.
class scratch_directory {
public:
    scratch_directory() {
        const char* const set = std::getenv("TMPDIR");
        const std::string parent = set == nullptr || *set == '\0' ? "/tmp" : set;
        std::string name = parent + "/redlock-local-XXXXXX";
        std::array<int, 2> ends{};
        if (::mkdtemp(name.data()) == nullptr || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
            throw failure(
                exit_code::internal,
                fmt::format(
                    "cannot create a directory for the servers in '{}', as TMPDIR says: {}",
                    printable(parent),
                    std::strerror(errno)));
        }
        cleaner_ = ::fork();
        if (cleaner_ == 0) {
            ::setpgid(0, 0); // what ends the tool's whole group must not end this process
            ::close(ends[1]);
            clean(ends[0], name);
        }
        ::close(ends[0]);
        end_ = ends[1];
        ::setenv("TMPDIR", name.c_str(), 1); // the servers' own directories are inside
    }
    ~scratch_directory() {
        ::close(end_);
        while (::waitpid(cleaner_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    scratch_directory(const scratch_directory&) = delete;
    scratch_directory& operator=(const scratch_directory&) = delete;

private:
    [[noreturn]] static void clean(int end, const std::string& directory) {
        ::prctl(PR_SET_NAME, "redlock-cleaner");
        sigset_t all;
        ::sigfillset(&all);
        ::sigprocmask(SIG_SETMASK, &all, nullptr);
        char byte = 0;
        while (::read(end, &byte, 1) < 0 && errno == EINTR) {
        }
        // A server that is just dying may still write.
        std::error_code error;
        for (int i = 0; i < 50; ++i) {
            std::filesystem::remove_all(directory, error);
            if (!std::filesystem::exists(directory)) {
                break;
            }
            ::poll(nullptr, 0, 20);
        }
        ::_exit(0);
    }

    pid_t cleaner_ = -1;
    int end_ = -1;
};

// Reads single keys without echo.
class key_mode {
public:
    explicit key_mode(bool wanted) : on_(wanted && ::tcgetattr(STDIN_FILENO, &before_) == 0) {
        if (on_) {
            termios single = before_;
            single.c_lflag &= static_cast<tcflag_t>(~(ICANON | ECHO));
            ::tcsetattr(STDIN_FILENO, TCSANOW, &single);
        }
    }
    ~key_mode() {
        if (on_) {
            ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
        }
    }
    key_mode(const key_mode&) = delete;
    key_mode& operator=(const key_mode&) = delete;

private:
    termios before_{};
    bool on_;
};

// All signals that end a program unless they are caught: no server may survive the tool.
class ending_signals : public asio::signal_set {
public:
    explicit ending_signals(asio::io_context& io) : asio::signal_set(io) {
        add_ending_signals(*this);
        for (const int number : {SIGALRM, SIGPIPE, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ}) {
            add(number);
        }
    }
};

class local {
public:
    local(const wishes& wanted, const settings& common)
        : wanted_(wanted),
          live_(::isatty(STDOUT_FILENO) == 1),
          keys_(wanted.faults == "keys" && ::isatty(STDIN_FILENO) == 1),
          signals_(io_),
          mode_(keys_),
          timer_(io_),
          input_(io_) {
        signals_.async_wait([this](const redlock::error_code& error, int) {
            if (!error) {
                io_.stop();
            }
        });
        redlock::testing::process::master_options how;
        how.program = server_program();
        for (std::size_t i = 0; i < wanted.count && !ended(); ++i) {
            servers_.emplace_back(how, master_process::no_wait());
        }
        for (std::size_t i = 0; i < servers_.size() && !ended(); ++i) {
            try {
                servers_[i].wait_until_ready();
            } catch (const std::runtime_error&) {
                throw failure(
                    exit_code::internal,
                    fmt::format(
                        "'{0}' does not start as a Redis-compatible server; to see why, run: {0} "
                        "--port {1}",
                        how.program,
                        servers_[i].port()));
            }
            servers_[i].declare_new(common.prefix);
        }
        found(common);
        next_fault_ = std::chrono::steady_clock::now() + wanted.every;
    }

    // Founds the quorum, so that a master may be down when the first lock is acquired.
    void found(const settings& common) {
        if (ended()) {
            return; // perhaps before the first server was started
        }
        redlock::config how;
        for (const master_process& one : servers_) {
            how.masters.emplace_back(one.url());
        }
        how.key_prefix = common.prefix;
        how.max_ttl = common.max_ttl;
        redlock::lock_manager first(io_, how);
        first.async_run(asio::detached);
        while (!ended() && first.get_health().admitted < servers_.size()) {
            io_.run_one();
        }
    }

    int run() {
        if (ended()) {
            return 0;
        }
        std::string urls;
        for (const master_process& one : servers_) {
            urls += (urls.empty() ? "" : ",") + one.url();
        }
        fmt::print("export REDLOCK_MASTERS={}\n", urls);
        std::fflush(stdout);
        if (keys_) {
            fmt::print("keys: a digit chooses a master, then k kills, h hangs, c continues, "
                       "r restarts it empty; q ends\n");
            input_.assign(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
            read_key();
        }
        look();
        io_.run();
        return 0;
    }

private:
    bool ended() {
        io_.poll();
        return io_.stopped();
    }

    void look() {
        if (wanted_.faults == "random" && std::chrono::steady_clock::now() >= next_fault_) {
            next_fault_ += wanted_.every;
            random_fault();
        }
        show();
        timer_.expires_after(glance);
        timer_.async_wait([this](const redlock::error_code& error) {
            if (!error) {
                look();
            }
        });
    }

    static std::string_view name_of(state what) {
        return what == state::up ? "up" : what == state::hung ? "hung" : "down";
    }

    void show() {
        std::string text;
        for (std::size_t i = 0; i < servers_.size(); ++i) {
            const state now = state_of(servers_[i]);
            text += fmt::format(
                "{}{}  {}  {}\n",
                keys_ && i == chosen_ ? '>' : ' ',
                i + 1,
                servers_[i].url(),
                tinted(
                    now == state::up     ? tint::good
                    : now == state::hung ? tint::fair
                                         : tint::bad,
                    name_of(now)));
        }
        if (live_) {
            fmt::print("{}\x1b[J{}", shown_ ? fmt::format("\x1b[{}A", servers_.size()) : "", text);
        } else if (text != text_ && shown_) {
            fmt::print("{}\n", text);
        }
        shown_ = true;
        text_ = std::move(text);
        std::fflush(stdout);
    }

    // Never more than a minority is away, so that locks go on.
    void random_fault() {
        std::size_t away = 0;
        for (master_process& one : servers_) {
            away += state_of(one) != state::up ? 1U : 0U;
        }
        master_process& victim = servers_[random_() % servers_.size()];
        switch (state_of(victim)) {
        case state::up:
            if (away < (servers_.size() - 1) / 2) {
                hurt(victim, random_() % 2 == 0 ? 'k' : 'h');
            }
            break;
        case state::hung:
            hurt(victim, 'c');
            break;
        case state::down:
            hurt(victim, 'r');
            break;
        }
    }

    static void hurt(master_process& one, char key) {
        try {
            if (key == 'k') {
                one.kill();
            } else if (key == 'h' && state_of(one) == state::up) {
                one.hang();
            } else if (key == 'c' && state_of(one) == state::hung) {
                one.resume();
            } else if (key == 'r') {
                one.restart_empty(); // its memory record is gone, so it is in quarantine
            }
        } catch (const std::runtime_error&) { // it has ended, or its port is taken now
        }
    }

    void read_key() {
        input_.async_read_some(
            asio::buffer(key_), [this](const redlock::error_code& error, std::size_t size) {
                if (error || size == 0) {
                    return;
                }
                press(key_[0]);
                read_key();
            });
    }

    void press(char key) {
        if (key >= '1' && key <= '9' && static_cast<std::size_t>(key - '1') < servers_.size()) {
            chosen_ = static_cast<std::size_t>(key - '1');
        } else if (key == 'q') {
            io_.stop();
        } else {
            hurt(servers_[chosen_], key);
        }
        show();
    }

    wishes wanted_;
    bool live_;
    bool keys_;
    asio::io_context io_;
    ending_signals signals_; // before all objects that a signal must clean up
    key_mode mode_;
    scratch_directory scratch_; // before the servers: their files are in it
    std::vector<master_process> servers_;
    asio::steady_timer timer_;
    asio::posix::stream_descriptor input_;
    std::array<char, 1> key_{};
    std::size_t chosen_ = 0;
    std::chrono::steady_clock::time_point next_fault_;
    std::mt19937 random_{std::random_device{}()};
    std::string text_;
    bool shown_ = false;
};

} // namespace

std::string server_program() {
    const char* const chosen = std::getenv("REDLOCK_REDIS_SERVER");
    if (const int error = chosen == nullptr || *chosen == '\0' ? 0 : look_for(chosen); error != 0) {
        throw failure(
            error == ENOENT ? exit_code::not_found : exit_code::not_executable,
            fmt::format(
                "REDLOCK_REDIS_SERVER is '{}', which cannot be run: {}",
                printable(chosen),
                std::strerror(error)));
    }
    try {
        return redlock::testing::process::find_server_program().string();
    } catch (const std::runtime_error& error) {
        throw failure(exit_code::not_found, error.what());
    }
}

void add_local(command_line& to) {
    const auto wanted = std::make_shared<wishes>();
    CLI::App& app = to.add(
        "local",
        "Run masters on this machine until Ctrl-C",
        "  redlock local                    # five, and a line to paste into another shell\n"
        "  redlock local 3 --faults keys    # kill, hang and restart them yourself\n"
        "  redlock local --faults random --every 2s\n\n"
        "New masters vote at once, for clients with the same --prefix; a restarted one is in\n"
        "quarantine for --max-ttl. All end with the tool.");
    app.add_option("N", wanted->count, "Number of masters")
        ->check(whole_number(1, masters_max))
        ->type_name("");
    app.add_option("--faults", wanted->faults, "What happens to the masters")
        ->check(one_of({"none", "keys", "random"}))
        ->type_name("none|keys|random")
        ->capture_default_str();
    add_duration(app, "--every", wanted->every, "Interval of --faults random");
    to.when(app, [wanted, &to] { return local(*wanted, to.common).run(); });
}

} // namespace cli
