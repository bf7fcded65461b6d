#include "local.hpp"

#include "command_line.hpp"
#include "exit_code.hpp"
#include "process/master_process.hpp"
#include "session.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
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
        redlock::testing::process::master_options how;
        how.program = server_program();
        for (std::size_t i = 0; i < wanted.count && !ended(); ++i) {
            servers_.emplace_back(how, master_process::no_wait());
        }
        for (std::size_t i = 0; i < servers_.size() && !ended(); ++i) {
            servers_[i].wait_until_ready();
            servers_[i].declare_new(key_prefix);
        }
        next_fault_ = std::chrono::steady_clock::now() + wanted.every;
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
        "New masters vote at once; a restarted one is in quarantine for --max-ttl. All end with "
        "the\n"
        "tool. The memory records are for --prefix.");
    app.add_option("N", wanted->count, "Number of masters")
        ->check(whole_number(1, masters_max))
        ->type_name("");
    app.add_option("--faults", wanted->faults, "What happens to the masters")
        ->check(one_of({"none", "keys", "random"}))
        ->type_name("none|keys|random")
        ->capture_default_str();
    add_duration(app, "--every", wanted->every, "Interval of --faults random");
    to.when(app, [wanted, &to] { return local(*wanted, to.common.prefix).run(); });
}

} // namespace cli
