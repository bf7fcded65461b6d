// A scheduler of which two instances run: one leads and writes a journal, the other stands by and
// goes on from the last entry when the first is gone. A leader that was paused, and does not know
// that another leads, is refused by the journal.
//
//     hot_standby NAME JOURNAL MASTER...
//     hot_standby host-1 /srv/journal redis://127.0.0.1:7101 redis://127.0.0.1:7102 ...
//
// SIGTERM ends it; a leader resigns first, and the other need not wait for its lease to end.

#include <redlock/election.hpp>
#include <redlock/error.hpp>
#include <redlock/fenced.hpp>
#include <redlock/lock_manager.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

// A file of lines "NUMBER TOKEN NAME". It is the resource, so the token is compared here: under its
// own lock, because between the comparison and the write another leader could come.
class journal {
public:
    explicit journal(const std::string& path)
        : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND, 0644)) {
        if (file_ < 0) {
            throw std::system_error(errno, std::generic_category(), path);
        }
    }
    journal(const journal&) = delete;
    journal& operator=(const journal&) = delete;
    ~journal() { ::close(file_); }

    /// Writes the next entry, and returns its number; throws `stale_token_error`.
    std::uint64_t append(std::uint64_t token, const std::string& name) {
        const guard alone(file_);
        const auto [number, highest] = last();
        if (token < highest) {
            throw redlock::stale_token_error(token, highest);
        }
        std::ostringstream line;
        line << number + 1 << ' ' << token << ' ' << name << '\n';
        const std::string text = line.str();
        if (::write(file_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
            throw std::system_error(errno, std::generic_category(), "cannot write the journal");
        }
        return number + 1;
    }

private:
    struct guard {
        explicit guard(int which) : file(which) { ::flock(file, LOCK_EX); }
        guard(const guard&) = delete;
        guard& operator=(const guard&) = delete;
        ~guard() { ::flock(file, LOCK_UN); }
        int file;
    };
    struct entry {
        std::uint64_t number = 0;
        std::uint64_t token = 0;
    };

    entry last() const {
        std::array<char, 512> end{}; // longer than any line
        const off_t size = ::lseek(file_, 0, SEEK_END);
        const off_t from = std::max<off_t>(0, size - static_cast<off_t>(end.size()));
        const ssize_t got = ::pread(file_, end.data(), end.size(), from);
        std::string text(end.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (!text.empty()) {
            text.pop_back(); // the last line's end
        }
        const std::size_t before = text.rfind('\n');
        entry found;
        std::istringstream(text.substr(before == std::string::npos ? 0 : before + 1))
            >> found.number >> found.token;
        return found;
    }

    int file_;
};

class scheduler {
public:
    scheduler(redlock::lock_manager& manager, journal& entries, std::string name)
        : manager_(manager),
          entries_(entries),
          name_(std::move(name)) {}

    // One term after the other, until it is cancelled.
    asio::awaitable<void> run() {
        redlock::election_options options;
        options.ttl = 2s;
        options.stop_margin = 300ms; // as long as an entry may take
        redlock::election election(manager_, "scheduler", options);
        redlock::locked_work work = [this](redlock::lock& term) { return lead(term); };
        for (;;) {
            std::cout << name_ << " stands by" << std::endl;
            try {
                co_await election.async_lead(work, asio::use_awaitable);
            } catch (const boost::system::system_error& ended) {
                if (ended.code() != redlock::errc::lost
                    && ended.code() != redlock::errc::stale_token) {
                    throw;
                }
                std::cout << name_ << " leads no more: " << ended.what() << std::endl;
            }
        }
    }

private:
    // Ended from outside at any co_await, when the lease is about to end or the program is.
    asio::awaitable<void> lead(redlock::lock& term) {
        const std::uint64_t token = term.fencing_token();
        std::cout << name_ << " leads with token " << token << std::endl;
        asio::steady_timer next(co_await asio::this_coro::executor);
        for (;;) {
            const std::uint64_t number = entries_.append(token, name_);
            std::cout << "entry " << number << std::endl;
            next.expires_after(100ms);
            co_await next.async_wait(asio::use_awaitable);
        }
    }

    redlock::lock_manager& manager_;
    journal& entries_;
    const std::string name_;
};

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 4) {
            throw std::invalid_argument("usage: hot_standby NAME JOURNAL MASTER...");
        }
        journal entries(argv[2]);
        redlock::config config;
        config.masters.assign(argv + 3, argv + argc);
        config.max_ttl = 2s;

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        manager.async_run(asio::detached);
        asio::cancellation_signal stop;
        asio::signal_set signals(io, SIGINT, SIGTERM);
        signals.async_wait([&](const boost::system::error_code& error, int) {
            if (!error) {
                stop.emit(asio::cancellation_type::terminal);
            }
        });
        scheduler mine(manager, entries, argv[1]);
        int status = 0;
        const auto ended = [&](const std::exception_ptr& error) {
            try {
                std::rethrow_exception(error); // it does not end without one
            } catch (const boost::system::system_error& why) {
                status = why.code() == asio::error::operation_aborted ? 0 : 1;
                std::cout << argv[1] << " ends: " << why.code().message() << std::endl;
            } catch (const std::exception& why) {
                status = 1;
                std::cout << argv[1] << " ends: " << why.what() << std::endl;
            }
            signals.cancel();
            manager.async_close(asio::detached);
        };
        asio::co_spawn(io, mine.run(), asio::bind_cancellation_slot(stop.slot(), ended));
        io.run();
        return status;
    } catch (const std::exception& error) {
        std::cerr << "hot_standby: " << error.what() << '\n';
        return 2;
    }
}
