#include "local.hpp"

#include "command_line.hpp"
#include "exit_code.hpp"
#include "local_server.hpp"
#include "session.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <random>
#include <utility>

namespace cli {
namespace {

constexpr std::size_t masters_max = 32;
constexpr milliseconds glance{200};

struct wishes {
    std::size_t count = 5;
    std::string faults = "none";
    milliseconds every{3'000};
};

class scratch_directory {
public:
    scratch_directory() {
        std::string name = (std::filesystem::temp_directory_path() / "redlock-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw failure(exit_code::internal, "cannot create a directory for the servers");
        }
        path_ = name;
    }
    ~scratch_directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    scratch_directory(const scratch_directory&) = delete;
    scratch_directory& operator=(const scratch_directory&) = delete;

    const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
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
    local(const wishes& wanted, const std::string& key_prefix)
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
        const std::string program = server_program();
        for (std::size_t i = 0; i < wanted.count && !ended(); ++i) {
            servers_.emplace_back(program, directory_.path(), key_prefix);
        }
        next_fault_ = std::chrono::steady_clock::now() + wanted.every;
    }

    int run() {
        if (ended()) {
            return 0;
        }
        std::string urls;
        for (const local_server& one : servers_) {
            urls += (urls.empty() ? "" : ",") + one.url();
        }
        fmt::print("export REDLOCK_MASTERS={}\n", urls);
        std::fflush(stdout);
        if (keys_) {
            fmt::print("keys: a digit chooses a master, then k kills, h hangs, c continues, "
                       "r restarts it empty; q ends\n");
            input_.assign(::dup(STDIN_FILENO));
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

    static std::string_view name_of(local_server::state what) {
        return what == local_server::state::up     ? "up"
               : what == local_server::state::hung ? "hung"
                                                   : "down";
    }

    void show() {
        std::string text;
        for (std::size_t i = 0; i < servers_.size(); ++i) {
            const auto state = servers_[i].now();
            text += fmt::format(
                "{}{}  {}  {}\n",
                keys_ && i == chosen_ ? '>' : ' ',
                i + 1,
                servers_[i].url(),
                tinted(
                    state == local_server::state::up     ? tint::good
                    : state == local_server::state::hung ? tint::fair
                                                         : tint::bad,
                    name_of(state)));
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
        for (local_server& one : servers_) {
            away += one.now() != local_server::state::up ? 1U : 0U;
        }
        local_server& victim = servers_[random_() % servers_.size()];
        switch (victim.now()) {
        case local_server::state::up:
            if (away < (servers_.size() - 1) / 2) {
                if (random_() % 2 == 0) {
                    victim.kill();
                } else {
                    victim.hang();
                }
            }
            break;
        case local_server::state::hung:
            victim.resume();
            break;
        case local_server::state::down:
            victim.restart();
            break;
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
        local_server& one = servers_[chosen_];
        if (key >= '1' && key <= '9' && static_cast<std::size_t>(key - '1') < servers_.size()) {
            chosen_ = static_cast<std::size_t>(key - '1');
        } else if (key == 'k') {
            one.kill();
        } else if (key == 'h') {
            one.hang();
        } else if (key == 'c') {
            one.resume();
        } else if (key == 'r') {
            one.restart();
        } else if (key == 'q') {
            io_.stop();
        }
        show();
    }

    wishes wanted_;
    bool live_;
    bool keys_;
    asio::io_context io_;
    ending_signals signals_; // before all objects that a signal must clean up
    key_mode mode_;
    scratch_directory directory_;
    std::vector<local_server> servers_;
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

void add_local(command_line& to) {
    const auto wanted = std::make_shared<wishes>();
    CLI::App& app = to.add(
        "local",
        "Run masters on this machine until Ctrl-C",
        "  redlock local                    # five, and a line to paste into another shell\n"
        "  redlock local 3 --faults keys    # kill, hang and restart them yourself\n"
        "  redlock local --faults random --every 2s\n\n"
        "New masters vote at once; a restarted one is in quarantine for --max-ttl. All end with "
        "the\n"
        "tool. The memory records are for --prefix.");
    app.add_option("N", wanted->count, "Number of masters")
        ->check(whole_number(1, masters_max))
        ->type_name("");
    app.add_option("--faults", wanted->faults, "none, keys or random")
        ->check(one_of({"none", "keys", "random"}))
        ->type_name("HOW")
        ->capture_default_str();
    add_duration(app, "--every", wanted->every, "Interval of --faults random");
    to.when(app, [wanted, &to] { return local(*wanted, to.common.prefix).run(); });
}

} // namespace cli
