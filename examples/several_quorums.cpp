// Resources spread over several quorums: one manager for each quorum, and `place`, which chooses
// the one that has a resource.
//
//     several_quorums redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103
//
// Each master is a quorum of its own here, to keep the example small; yours have three or five.

#include <redlock/placement.hpp>
#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <deque>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace asio = boost::asio;

namespace {

class quorums {
public:
    explicit quorums(asio::io_context& io) : io_(io) {}

    void add(const std::string& name, const std::string& master) {
        redlock::config config;
        config.masters = {master};
        config.max_ttl = std::chrono::seconds(1);
        names_.push_back(name);
        managers_.emplace_back(io_, config).async_run(asio::detached);
    }
    void close() {
        for (redlock::lock_manager& one : managers_) {
            one.async_close(asio::detached);
        }
    }

    // The names decide: every program must use the same ones.
    std::size_t home_of(std::string_view resource) const {
        return redlock::place(names_, resource);
    }
    const std::string& name(std::size_t quorum) const { return names_[quorum]; }
    redlock::lock_manager& manager(std::size_t quorum) { return managers_[quorum]; }
    std::size_t size() const { return names_.size(); }

private:
    asio::io_context& io_;
    std::vector<std::string> names_;
    std::deque<redlock::lock_manager> managers_;
};

asio::awaitable<void> run(quorums& all) {
    redlock::acquire_options options;
    options.ttl = std::chrono::seconds(1);
    for (const char* const name : {"orders/1", "orders/2", "orders/3", "orders/4"}) {
        const std::string resource = name;
        const std::size_t home = all.home_of(resource);
        redlock::lock lock =
            co_await all.manager(home).async_acquire(resource, options, asio::use_awaitable);
        std::cout << resource << " is locked in " << all.name(home) << '\n';
        co_await lock.async_release(asio::use_awaitable);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::cout << all.name(i) << ": " << to_string(all.manager(i).get_health()) << '\n';
    }
}

} // namespace

int main(int argc, char** argv) {
    try {
        asio::io_context io;
        quorums all(io);
        for (int i = 1; i < argc; ++i) {
            all.add("quorum-" + std::to_string(i), argv[i]);
        }
        int status = 0;
        asio::co_spawn(io, run(all), [&](const std::exception_ptr& error) {
            status = error ? 1 : 0;
            all.close();
        });
        io.run();
        return status;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
