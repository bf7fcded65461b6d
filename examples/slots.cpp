// Five processes compete for three slots; one of them is killed while it has one. Its slot
// becomes free again, no slot ever has two holders, and at the end no key is left.
//
//     slots [--seconds 20] redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103

#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace asio = boost::asio;
using std::chrono::milliseconds;
using moment = std::chrono::steady_clock::time_point;

namespace {

constexpr std::size_t workers = 5;
constexpr std::size_t places = 3;

redlock::config config_for(const std::vector<std::string>& masters) {
    redlock::config config;
    config.masters.assign(masters.begin(), masters.end());
    config.max_ttl = milliseconds(1000); // so soon a slot comes back whose worker is gone
    return config;
}

// --- A worker -----------------------------------------------------------------------------------

// What it does with its slot. A worker that loses it stops.
asio::awaitable<void> use(const redlock::lock& held) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (int step = 0; step < 10 && held.held(); ++step) {
        timer.expires_after(milliseconds(20));
        co_await timer.async_wait(asio::use_awaitable);
    }
}

asio::awaitable<void>
compete(redlock::lock_manager& manager, std::size_t worker, int out, moment end) {
    const auto say = [&](const char* what, std::size_t slot) {
        const std::string line =
            std::to_string(worker) + what + std::to_string(slot) + '\n'; // short, so in one piece
        if (::write(out, line.data(), line.size()) < 0) {
            throw std::runtime_error("nobody listens");
        }
    };
    redlock::acquire_options options;
    options.ttl = milliseconds(1000);
    while (std::chrono::steady_clock::now() < end) {
        options.wait = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
        auto taken = co_await manager.async_acquire(
            redlock::slots("crew", places), options, asio::as_tuple(asio::use_awaitable));
        auto& [error, held] = taken;
        if (!error) {
            say(" takes ", held.slot());
            co_await use(held);
            say(" gives ", held.slot());
            co_await held.async_release(asio::as_tuple(asio::use_awaitable));
        }
    }
}

int be_worker(const redlock::config& config, std::size_t worker, int out, moment end) {
    asio::io_context io;
    redlock::lock_manager manager(io.get_executor(), config);
    manager.async_run(asio::detached);
    int status = 0;
    asio::co_spawn(io, compete(manager, worker, out, end), [&](const std::exception_ptr& error) {
        status = error ? 1 : 0;
        manager.async_close(asio::detached);
    });
    io.run();
    return status;
}

// --- Who looks on -------------------------------------------------------------------------------

class referee {
public:
    // False when the rules were broken. A line is "WORKER takes SLOT" or "WORKER gives SLOT".
    void hear(const std::string& line) {
        std::cout << "worker " << line << std::endl;
        const std::size_t worker = std::stoul(line);
        const std::size_t slot = std::stoul(line.substr(line.rfind(' ')));
        if (line.find("gives") != std::string::npos) {
            holders_.erase(slot);
            return;
        }
        // That of the worker that was killed comes back when its lease ends.
        const auto other = holders_.find(slot);
        broken_ = broken_ || (other != holders_.end() && other->second != killed_);
        came_back_ = came_back_ || slot == lost_;
        holders_[slot] = worker;
    }

    // A worker that has a slot at this moment, to be killed; `workers` if there is none.
    std::size_t victim() {
        if (!holders_.empty()) {
            lost_ = holders_.begin()->first;
            killed_ = holders_.begin()->second;
        }
        return killed_;
    }

    bool broken() const { return broken_; }
    bool came_back() const { return came_back_; }

private:
    std::map<std::size_t, std::size_t> holders_; // by slot
    std::size_t killed_ = workers;
    std::size_t lost_ = places; // the slot that it had
    bool broken_ = false;
    bool came_back_ = false;
};

std::size_t free_slots(const redlock::config& config) {
    asio::io_context io;
    redlock::lock_manager manager(io.get_executor(), config);
    manager.async_run(asio::detached);
    std::size_t found = 0;
    manager.async_ready([&](redlock::error_code) {
        manager.async_query(
            redlock::slots("crew", places),
            [&](redlock::error_code, const redlock::lock_status& status) {
                found = status.count(redlock::lock_state::free);
                manager.async_close(asio::detached);
            });
    });
    io.run();
    return found;
}

int look_on(const redlock::config& config, int in, std::vector<pid_t> children, moment kill_at) {
    referee judge;
    std::string heard;
    std::array<char, 4096> buffer{};
    bool killed = false;
    while (true) {
        pollfd watched{in, POLLIN, 0};
        if (::poll(&watched, 1, 10) > 0) {
            const ssize_t size = ::read(in, buffer.data(), buffer.size());
            if (size <= 0) {
                break; // all have ended
            }
            heard.append(buffer.data(), static_cast<std::size_t>(size));
            for (std::size_t at = heard.find('\n'); at != std::string::npos;
                 at = heard.find('\n')) {
                judge.hear(heard.substr(0, at));
                heard.erase(0, at + 1);
            }
        } else if (!killed && std::chrono::steady_clock::now() >= kill_at) {
            if (const std::size_t victim = judge.victim(); victim < workers) {
                killed = true;
                std::cout << "worker " << victim << " is killed" << std::endl;
                ::kill(children[victim], SIGKILL);
            }
        }
    }
    bool failed = judge.broken();
    for (const pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        failed = failed || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
    }
    std::cout << (judge.broken() ? "a slot had two holders" : "no slot had two holders") << '\n'
              << (judge.came_back() ? "the slot of the killed worker came back"
                                    : "nobody took the slot of the killed worker")
              << '\n';
    const std::size_t left = places - free_slots(config);
    std::cout << left << " of " << places << " slots are taken at the end\n";
    return !failed && judge.came_back() && left == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    try {
        std::vector<std::string> masters(argv + 1, argv + argc);
        std::chrono::seconds length(20);
        if (masters.size() > 1 && masters[0] == "--seconds") {
            length = std::chrono::seconds(std::stoi(masters[1]));
            masters.erase(masters.begin(), masters.begin() + 2);
        }
        const redlock::config config = config_for(masters);
        const moment begin = std::chrono::steady_clock::now();
        std::array<int, 2> ends{};
        if (::pipe(ends.data()) != 0) {
            throw std::runtime_error("no pipe");
        }
        std::vector<pid_t> children;
        for (std::size_t worker = 0; worker < workers; ++worker) {
            const pid_t child = ::fork(); // before there is a thread or a connection
            if (child == 0) {
                ::close(ends[0]);
                return be_worker(config, worker, ends[1], begin + length);
            }
            children.push_back(child);
        }
        ::close(ends[1]);
        return look_on(config, ends[0], std::move(children), begin + length / 2);
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
