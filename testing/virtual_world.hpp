// The environment of virtual managers: masters in memory, the connections to them, and the events
// to come. Used by one thread only.

#pragma once

#include "manager/completion.hpp"
#include "manager/time_source.hpp"
#include "memory/audience.hpp"
#include "memory/lua_machine.hpp"
#include "memory/server.hpp"
#include "net/backend.hpp"
#include "net/socket_callbacks.hpp"

#include <redlock/clock.hpp>
#include <redlock/config.hpp>
#include <redlock/lock_manager.hpp>
#include <redlock/testing.hpp>

#include <boost/asio/io_context.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing {

/// The receiver of a master's replies: a socket of a manager.
struct listener {
    virtual void read() = 0;
    virtual void send_back(std::string bytes) = 0;
    virtual void cut() = 0;

protected:
    ~listener() = default;
};

/// One master: its process and its connections.
struct memory_master {
    explicit memory_master(memory::lua_machine& lua) : process(lua) {}

    memory::server process;
    memory::audience ears;
    std::map<std::uint32_t, listener*> connected; // by connection id
    bool down = false;
    bool hung = false;
    std::chrono::nanoseconds round_trip = std::chrono::milliseconds(1);
    unsigned boots = 0;
};

/// Events in the order of their time; events of the same time in the order of insertion.
using agenda = std::multimap<time_point, std::function<void()>>;

struct virtual_world {
    virtual_world(std::size_t count, config settings);
    ~virtual_world();

    time_point now() const noexcept { return now_->load(std::memory_order_relaxed); }
    void set_now(time_point moment) noexcept { now_->store(moment, std::memory_order_relaxed); }
    std::int64_t wall_us() const noexcept;

    /// Runs all events until `until`, or until `done` returns true.
    bool run_until(time_point until, const std::function<bool()>& done);
    void freeze(time_point until);

    lock_manager make_manager();
    lock_manager& add_manager();

    /// Calls `f` for each connection of a master.
    void each_connection(memory_master& there, const std::function<void(listener&)>& f);
    void kill(memory_master& there);
    void restart(std::size_t index, bool keeps);
    std::string command(memory_master& there, const std::vector<std::string>& words);
    std::string key(std::string_view resource) const;

    config settings;
    std::shared_ptr<std::atomic<time_point>> now_ =
        std::make_shared<std::atomic<time_point>>(time_point(std::chrono::hours(1000)));
    memory::lua_machine lua;
    std::vector<std::unique_ptr<memory_master>> masters;
    agenda master_events;
    agenda client_events;
    std::uint32_t next_connection = 1;
    std::uint64_t random = 42;
    std::size_t late_wakes = 0; // times that a manager asked for a timer for what was due already
    bool running = false;
    boost::asio::io_context context; // before its managers: handlers may own locks
    std::list<lock_manager> managers;
};

/// The connections of one manager.
class virtual_backend final : public net::backend {
public:
    virtual_backend(virtual_world& all, net::socket_callbacks& owner);
    ~virtual_backend() override;

    void open(std::size_t socket) override;
    void close(std::size_t socket) override;
    std::size_t write(std::size_t socket, std::string& bytes) override;
    void wake_by(time_point moment) override;
    void sleep() noexcept override { armed_ = time_point::min(); }
    void random(std::span<unsigned char> out) override;

private:
    struct connection final : listener {
        virtual_backend* outside = nullptr;
        std::size_t socket = 0;
        std::uint32_t id = 0; // 0: not connected
        bool accepted = false;
        std::string inbox;
        time_point last_command{};
        time_point last_reply{};

        void read() override { outside->read_from(*this); }
        void send_back(std::string bytes) override { outside->send_back(*this, std::move(bytes)); }
        void cut() override { outside->cut(*this); }
    };

    memory_master& master_of(const connection& one) const;
    /// Schedules `f` for that connection, unless the connection ends before.
    void
    later(agenda& when, time_point moment, connection& one, std::function<void(connection&)> f);
    void end(connection& one);
    void read_from(connection& one);
    void send_back(connection& one, std::string bytes);
    void cut(connection& one);

    virtual_world& all_;
    net::socket_callbacks& owner_;
    std::vector<connection> connections_;
    time_point armed_ = time_point::max();
};

}}} // namespace redlock::REDLOCK_ABI::testing
