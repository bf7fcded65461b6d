// Runs the jobs of a directory, at most LIMIT at a time in the whole fleet, however many runners
// there are. A runner that is killed gives its slot up when its lease ends, and whoever has the
// slot then does its job again.
//
//     job_runner LIMIT DIRECTORY MASTER...
//     job_runner 2 /srv/jobs redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103
//
// The directory is shared by all runners. A job is a shell script in it; it is moved to slot-N/ by
// who has slot N, then to done/ or failed/. The runner ends when there are no jobs left.

#include <redlock/lock_manager.hpp>
#include <redlock/slot_pool.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace asio = boost::asio;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

std::vector<fs::path> jobs_in(const fs::path& directory) {
    std::vector<fs::path> found;
    for (const fs::directory_entry& one : fs::directory_iterator(directory)) {
        if (one.is_regular_file()) {
            found.push_back(one.path());
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

// What is waiting, and what each slot has. A slot's directory is its holder's: nobody else looks.
class job_directory {
public:
    job_directory(fs::path root, std::size_t slots) : root_(std::move(root)), slots_(slots) {
        for (std::size_t slot = 0; slot < slots; ++slot) {
            fs::create_directories(place_of(slot));
        }
        fs::create_directories(root_ / "done");
        fs::create_directories(root_ / "failed");
    }

    /// The next job of that slot: what a runner before us has left there, or one that waits.
    std::optional<fs::path> next(std::size_t slot) const {
        const std::vector<fs::path> left = jobs_in(place_of(slot));
        if (!left.empty()) {
            return left.front();
        }
        for (const fs::path& job : jobs_in(root_)) {
            const fs::path mine = place_of(slot) / job.filename();
            std::error_code taken;
            fs::rename(job, mine, taken); // one of several who try gets it
            if (!taken) {
                return mine;
            }
        }
        return std::nullopt;
    }

    void end(const fs::path& job, bool succeeded) const {
        fs::rename(job, root_ / (succeeded ? "done" : "failed") / job.filename());
    }

    bool empty() const {
        bool all = jobs_in(root_).empty();
        for (std::size_t slot = 0; slot < slots_; ++slot) {
            all = all && jobs_in(place_of(slot)).empty();
        }
        return all;
    }

private:
    fs::path place_of(std::size_t slot) const { return root_ / ("slot-" + std::to_string(slot)); }

    fs::path root_;
    std::size_t slots_;
};

pid_t start(const fs::path& job, const redlock::slot& slot) {
    const pid_t runner = ::getpid();
    const std::string number = std::to_string(slot.number());
    const std::string token = std::to_string(slot.fencing_token().value_or(0));
    const pid_t child = ::fork();
    if (child < 0) {
        throw std::system_error(errno, std::generic_category(), "cannot start a process");
    }
    if (child == 0) {
        // A job must not outlive its runner: nobody would end it when the slot is lost. What it has
        // started itself is not ended so: `redlock run` does that, too.
#ifdef __linux__
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
        if (::getppid() != runner) { // it has just died
            ::_exit(127);
        }
        ::setenv("JOB_SLOT", number.c_str(), 1);
        ::setenv("JOB_FENCING_TOKEN", token.c_str(), 1); // for whatever it writes to
        ::execl("/bin/sh", "sh", job.c_str(), static_cast<char*>(nullptr));
        ::_exit(127);
    }
    return child;
}

class runner {
public:
    runner(redlock::slot_pool& pool, const job_directory& jobs)
        : pool_(pool),
          jobs_(jobs),
          children_(pool.get_executor(), SIGCHLD) {}

    asio::awaitable<void> run() {
        redlock::acquire_options options;
        options.ttl = 2s;
        options.stop_margin = 500ms; // a job is killed so long before another may have its slot
        options.wait = redlock::wait_for::forever();
        options.fencing = true;
        asio::steady_timer pause(pool_.get_executor());
        while (!jobs_.empty()) {
            redlock::slot slot = co_await pool_.async_acquire(options, asio::use_awaitable);
            slot.async_wait_lost([this](redlock::error_code released, redlock::loss_reason) {
                if (!released && child_ != 0) {
                    ::kill(child_, SIGKILL);
                }
            });
            while (slot.held()) {
                const auto job = jobs_.next(slot.number());
                if (!job) {
                    break;
                }
                co_await work(slot, *job);
            }
            auto token = asio::as_tuple(asio::use_awaitable);
            co_await slot.async_release(token);
            // The others' jobs are left: one of them may die, and its slot come to us.
            pause.expires_after(100ms);
            co_await pause.async_wait(token);
        }
    }

private:
    asio::awaitable<void> work(redlock::slot& slot, const fs::path& job) {
        std::cout << "slot " << slot.number() << " begins " << job.filename().string() << std::endl;
        child_ = start(job, slot);
        int status = 0;
        auto token = asio::as_tuple(asio::use_awaitable);
        while (::waitpid(child_, &status, WNOHANG) == 0) {
            co_await children_.async_wait(token);
        }
        child_ = 0;
        if (!slot.held()) {
            std::cout << "slot " << slot.number() << " was lost" << std::endl;
            co_return; // the job is where the next holder finds it
        }
        const bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        jobs_.end(job, succeeded);
        std::cout << "slot " << slot.number() << (succeeded ? " has done " : " has failed ")
                  << job.filename().string() << std::endl;
    }

    redlock::slot_pool& pool_;
    const job_directory& jobs_;
    asio::signal_set children_;
    pid_t child_ = 0; // that works on the job, if any
};

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 4) {
            throw std::invalid_argument("usage: job_runner LIMIT DIRECTORY MASTER...");
        }
        const std::size_t limit = std::stoul(argv[1]);
        redlock::config config;
        config.masters.assign(argv + 3, argv + argc);
        config.max_ttl = 2s;

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        redlock::slot_pool pool(manager, "jobs", limit);
        const job_directory jobs(argv[2], limit);
        manager.async_run(asio::detached);
        int status = 0;
        runner mine(pool, jobs);
        asio::co_spawn(io, mine.run(), [&](const std::exception_ptr& error) {
            try {
                if (error) {
                    std::rethrow_exception(error);
                }
            } catch (const std::exception& why) {
                std::cerr << "job_runner: " << why.what() << '\n';
                status = 1;
            }
            manager.async_close(asio::detached);
        });
        io.run();
        return status;
    } catch (const std::exception& error) {
        std::cerr << "job_runner: " << error.what() << '\n';
        return 2;
    }
}
