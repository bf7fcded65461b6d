// One process among several that contend for one lock: some workers on one manager, each of which
// takes the lock a number of times and counts in a file that only the lock protects.
//
//     contention_worker DIRECTORY WORKERS ROUNDS MAX_TTL_MS URL...
//
// The directory's file `turns` gets a line for each turn: when it began, when it ended or the lease
// did, whichever came first (nanoseconds of the monotonic clock, which all processes share), and
// the process. A machine may pause a worker for longer than its lease: what the worker does then
// counts as no overlap, because nothing promises it. Lines with what went wrong go to the standard
// output, and make the exit status 1.

#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace redlock;

class record_of_turns {
public:
    explicit record_of_turns(const char* dir)
        : file_(::open(
            (std::string(dir) + "/turns").c_str(),
            O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC,
            0600)) {}

    // One turn, if the lock is still had.
    bool pass(const lock& held) const {
        const auto began = std::chrono::steady_clock::now();
        const auto lease = began + held.remaining();
        if (lease <= began) {
            return false;
        }
        for (int i = 0; i < 10; ++i) {
            ::sched_yield(); // gives a wrong second holder its chance
        }
        const auto ended = std::min(std::chrono::steady_clock::now(), lease);
        std::ostringstream line;
        line << began.time_since_epoch() / std::chrono::nanoseconds(1) << ' '
             << ended.time_since_epoch() / std::chrono::nanoseconds(1) << ' ' << ::getpid() << '\n';
        const std::string text = line.str();
        return ::write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    }

private:
    int file_;
};

class worker : public std::enable_shared_from_this<worker> {
public:
    worker(lock_manager& manager, const record_of_turns& turns, int rounds, acquire_options options)
        : manager_(manager),
          turns_(turns),
          rounds_(rounds),
          options_(options) {}

    void next() {
        if (rounds_ == 0) {
            return;
        }
        manager_.async_acquire(
            "contended",
            options_,
            with_diagnostics(why_, [me = shared_from_this()](error_code error, lock held) mutable {
                if (error == errc::no_quorum || error == errc::validity_exhausted) {
                    me->next(); // an outage that has lasted for the whole wait
                } else if (error) {
                    std::printf("%s\n", to_string(me->why_).c_str());
                    ++failures;
                } else {
                    me->work(std::move(held));
                }
            }));
    }

    static inline int failures = 0;

private:
    void work(lock held) {
        if (turns_.pass(held)) {
            --rounds_;
        }
        held_ = std::move(held);
        held_.async_release([me = shared_from_this()](error_code, release_result) { me->next(); });
    }

    lock_manager& manager_;
    const record_of_turns& turns_;
    int rounds_;
    acquire_options options_;
    diagnostics why_;
    lock held_;
};

} // namespace

int main(int argc, char** argv) {
    if (argc < 6) {
        return 2;
    }
    const record_of_turns turns(argv[1]);
    const int workers = std::stoi(argv[2]);
    const int rounds = std::stoi(argv[3]);
    config settings;
    settings.max_ttl = std::chrono::milliseconds(std::stoi(argv[4]));
    settings.masters.assign(argv + 5, argv + argc);
    settings.master_timeout = std::chrono::milliseconds(500);
    settings.reconnect_delay_max = std::chrono::milliseconds(100);

    boost::asio::io_context io;
    lock_manager manager(io.get_executor(), settings);
    acquire_options options;
    options.ttl = settings.max_ttl;
    options.wait = std::chrono::milliseconds(50'000);
    manager.async_run([](error_code) {});
    std::vector<std::weak_ptr<worker>> all;
    for (int i = 0; i < workers; ++i) {
        const auto one = std::make_shared<worker>(manager, turns, rounds, options);
        all.push_back(one);
        one->next();
    }
    const auto busy = [&] {
        for (const auto& one : all) {
            if (!one.expired()) {
                return true;
            }
        }
        return false;
    };
    while (busy()) {
        io.run_one();
    }
    manager.async_close([](error_code) {});
    io.run();
    return worker::failures == 0 ? 0 : 1;
}
