// One process among several that contend for one lock: some workers on one manager, each of which
// takes the lock a number of times and counts in a file that only the lock protects.
//
//     contention_worker DIRECTORY WORKERS ROUNDS MAX_TTL_MS QUARANTINE URL...
//
// In the directory: `inside` exists while somebody is in, `counter` holds a number, and `overlaps`
// has a line for each time that somebody was met inside. Lines with what went wrong go to the
// standard output, and make the exit status 1.

#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace redlock;
namespace fs = std::filesystem;

class critical_section {
public:
    explicit critical_section(fs::path dir) : dir_(std::move(dir)) {}

    void pass() const {
        const std::string inside = dir_ / "inside";
        const int file = ::open(inside.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
        if (file < 0) {
            std::ofstream(dir_ / "overlaps", std::ios::app) << ::getpid() << '\n';
            return;
        }
        ::close(file);
        long value = 0;
        std::ifstream(dir_ / "counter") >> value;
        ::sched_yield(); // gives whoever is in by mistake its chance
        std::ofstream(dir_ / "counter") << value + 1;
        ::unlink(inside.c_str());
    }

private:
    fs::path dir_;
};

class worker : public std::enable_shared_from_this<worker> {
public:
    worker(lock_manager& manager, critical_section section, int rounds, acquire_options options)
        : manager_(manager),
          section_(std::move(section)),
          rounds_(rounds),
          options_(options) {}

    void next() {
        if (rounds_ == 0) {
            return;
        }
        manager_.async_acquire(
            "contended",
            options_,
            why_,
            [me = shared_from_this()](error_code error, lock held) mutable {
                if (error == errc::no_quorum || error == errc::too_slow) {
                    me->next(); // an outage that has lasted for the whole wait
                } else if (error) {
                    std::printf("%s\n", to_string(me->why_).c_str());
                    ++failures;
                } else {
                    me->work(std::move(held));
                }
            });
    }

    static inline int failures = 0;

private:
    void work(lock held) {
        // Margin for the section, as a careful user would ask for.
        if (held.held() && held.remaining() > std::chrono::milliseconds(500)) {
            section_.pass();
            --rounds_;
        }
        held_ = std::move(held);
        held_.async_release([me = shared_from_this()](error_code, release_result) { me->next(); });
    }

    lock_manager& manager_;
    critical_section section_;
    int rounds_;
    acquire_options options_;
    diagnostics why_;
    lock held_;
};

} // namespace

int main(int argc, char** argv) {
    if (argc < 7) {
        return 2;
    }
    const critical_section section(argv[1]);
    const int workers = std::stoi(argv[2]);
    const int rounds = std::stoi(argv[3]);
    config settings;
    settings.max_ttl = std::chrono::milliseconds(std::stoi(argv[4]));
    settings.quarantine = std::string(argv[5]) == "on" ? quarantine::on : quarantine::off;
    settings.masters.assign(argv + 6, argv + argc);
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
        const auto one = std::make_shared<worker>(manager, section, rounds, options);
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
