// The same without coroutines: each operation takes a function that is called with its result.
//
//     callbacks redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103

#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <utility>

namespace asio = boost::asio;

namespace {

// The object that the callbacks belong to. It outlives them: they end with io_context::run.
class nightly_job {
public:
    nightly_job(asio::io_context& io, redlock::config config)
        : manager_(io.get_executor(), std::move(config)) {}

    void start() {
        manager_.async_run([](redlock::error_code) {});
        // No wait for async_ready: an acquire that may wait also waits for a quorum.
        std::cout << "waiting for the lock, and for a quorum that may vote" << std::endl;
        options_.ttl = std::chrono::seconds(2);
        options_.wait = std::chrono::milliseconds(10'000);
        manager_.async_acquire(
            "jobs/nightly",
            options_,
            redlock::with_diagnostics(
                diagnostics_, [this](redlock::error_code error, redlock::lock lock) {
                    on_acquired(error, std::move(lock));
                }));
    }

    bool done() const { return done_; }

private:
    void on_acquired(redlock::error_code error, redlock::lock lock) {
        // What to do next depends on the kind of failure, and there are two.
        if (error == redlock::condition::not_acquired) {
            std::cout << "another one does it tonight: " << to_string(diagnostics_) << '\n';
            close();
        } else if (error) {
            std::cout << "no lock can be acquired now, alert an operator: "
                      << to_string(diagnostics_) << '\n';
            close();
        } else {
            lock_ = std::move(lock); // while it lives, it is renewed
            work();
        }
    }

    void work() {
        done_ = lock_.held();
        lock_.async_release([this](redlock::error_code, redlock::release_result result) {
            // `released`: it was ours to the end. Otherwise there may have been another holder.
            std::cout << "done, and the lock was " << to_string(result) << '\n';
            done_ = done_ && result == redlock::release_result::released;
            close();
        });
    }

    void close() {
        manager_.async_close([](redlock::error_code) {});
    }

    redlock::lock_manager manager_;
    redlock::acquire_options options_;
    redlock::diagnostics diagnostics_;
    redlock::lock lock_;
    bool done_ = false;
};

} // namespace

int main(int argc, char** argv) {
    try {
        redlock::config config;
        config.masters.assign(argv + 1, argv + argc);
        config.max_ttl = std::chrono::seconds(2);

        asio::io_context io;
        nightly_job job(io, std::move(config));
        job.start();
        io.run();
        return job.done() ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
