// For your own tests: real masters that a test starts and mistreats, and a manager in virtual time.
// A dependency of its own, `redlock-testing`: nothing of it is in the library. See
// docs/testing_kit.md.

#pragma once

#include <redlock/lock_manager.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing {

/// \name Real masters
/// \{

/// How real masters are started.
struct master_options {
    /// The server's program: a path, or a name that is looked up in PATH. Empty: the environment's
    /// `REDLOCK_REDIS_SERVER`, else `redis-server`, else `valkey-server`.
    std::string program;
    /// `url()` is that of a Unix socket in place of a port on loopback.
    bool unix_socket = false;
    /// Every write is on disk before it is answered: `restart` finds the data again. Without it a
    /// restart is one with an empty memory.
    bool durable = false;
    /// The password of the default user; empty: none. It is not part of `url()`.
    std::string password;
    /// More words for the server's command line: `{"--maxmemory", "10mb"}`.
    std::vector<std::string> arguments;
};

/// One real server: a child process, with its files in a directory of its own. Made by `masters`.
/// Functions throw `std::runtime_error` with a sentence when they cannot do it.
/// \par Thread safety
/// None: one thread at a time.
class master {
public:
    /// Leaves the other without a server: it can only be destroyed.
    master(master&&) noexcept;
    master& operator=(master&&) = delete;
    ~master();

    /// "redis://127.0.0.1:port" or "unix:///path": the same as long as this object lives.
    std::string url() const;
    /// Whether the process lives; a hung one does.
    bool running();

    /// A crash: SIGKILL. From now on connections are refused.
    void kill() noexcept;
    /// Kills it if it runs, and starts it again at the same address. Its memory is empty unless
    /// `master_options::durable` was set. Returns when it answers; 10 s at most.
    void restart();
    /// The same, and what it had on disk is gone, too.
    void restart_empty();
    /// SIGSTOP: its connections stay open, and nothing is answered until `resume`.
    void hang();
    /// Ends a `hang`: what has arrived meanwhile is executed.
    void resume();
    /// Executes nothing for `span`, then what has arrived meanwhile. Returns at once.
    void pause(std::chrono::milliseconds span);
    /// FLUSHALL: the memory is empty, the process goes on.
    void flush();
    /// Cuts all connections of clients, which may connect again at once.
    void cut();
    /// Writes the master's record (docs/guarantees.md): no lock with this prefix has been on it
    /// before. So guarded managers with `quarantine::on` count its votes at once; otherwise the
    /// first contact begins a quarantine. Call it before any manager connects. It is valid for this
    /// process of the server: a restart begins a quarantine.
    void declare_new(std::string_view key_prefix = "redlock:");

    /// One command on a connection of its own. The answer as redis-cli prints it: integers in
    /// decimal, "(nil)", "(error) text", arrays one element a line. Throws when none comes in 5 s.
    std::string command(const std::vector<std::string>& words) const;
    /// What the server has said on its output.
    std::string log() const;

private:
    friend class masters;
    struct state;
    explicit master(std::unique_ptr<state> made) noexcept;

    std::unique_ptr<state> state_;
};

/// N real masters that know nothing of each other, for one quorum. The servers and their files end
/// with this object, and also when the test's process is killed. On Linux the kernel sees to that,
/// and takes the end of the *thread* that made the object for the end of the process: make it in
/// the main thread, or in one that lives as long.
class masters {
public:
    /// Starts them all, and returns when they answer; 10 s at most. Throws `std::runtime_error`
    /// when no server's program is found, or with the server's own words when one does not start.
    explicit masters(std::size_t count = 3, const master_options& options = {});

    /// Throws `std::out_of_range`.
    master& operator[](std::size_t index) { return all_.at(index); }
    /// How many there are, alive or not.
    std::size_t size() const noexcept { return all_.size(); }
    /// Of each, in their order.
    std::vector<std::string> urls() const;

    /// A configuration for these masters, fit for a test: `quarantine::off`, as they are known to
    /// be new, and with time for a slow machine (`master_timeout` 2 s, reconnection within 100 ms).
    config make_config() const;

private:
    std::vector<master> all_;
    std::string password_;
};
/// \}

/// \name Virtual time
/// \{

class virtual_quorum;
struct virtual_world;

/// One master in memory. It executes the very scripts that a real one is sent.
class virtual_master {
public:
    /// A crash: connections break, and are refused until a restart.
    void kill();
    /// Back under another run id, with what it had in memory (`restart`, a durable master) or with
    /// nothing. It is connected when its manager tries again, within
    /// `config::reconnect_delay_max`, and then quarantined: it does not vote for a bit longer than
    /// `config::max_ttl`.
    void restart();
    void restart_empty(); ///< see `restart`
    /// Connections stay open, and nothing is executed until `resume`.
    void hang();
    void resume(); ///< executes what has arrived meanwhile
    /// How long an answer takes from now on, there and back. 1 ms to begin with.
    void answer_after(std::chrono::nanoseconds span);
    /// FLUSHALL: the memory is empty, the process goes on.
    void flush();
    /// Breaks all connections, which may be made again at once.
    void cut();
    /// One command, executed now, without a connection; the answer as `master::command` has it.
    std::string command(const std::vector<std::string>& words);

private:
    friend class virtual_quorum;
    virtual_master(virtual_quorum& quorum, std::size_t index) noexcept
        : quorum_(&quorum),
          index_(index) {}

    virtual_quorum* quorum_;
    std::size_t index_;
};

/// Masters in memory and a clock that stands still until the test moves it: to see what your code
/// does when it loses a lock, deterministic and without waiting. The managers that it gives are
/// ordinary ones, with all of the library behind them but the sockets.
///
/// All runs in the thread of the test, on `context()`, inside `advance` and `advance_until`. Time
/// moves for the managers and their locks (`held`, `remaining`, renewal, loss). It does not for
/// `redlock::clock::now()` nor for timers of Asio: code that is to be tested so gets its waits
/// handed in, and a test hands in `async_sleep`.
/// \par Thread safety
/// None: all from one thread, the managers included.
class virtual_quorum {
public:
    /// \param masters 1 to 32
    /// \param settings of all managers; its `masters` are replaced
    explicit virtual_quorum(std::size_t masters = 3, config settings = {});
    virtual_quorum(const virtual_quorum&) = delete;
    virtual_quorum& operator=(const virtual_quorum&) = delete;
    /// What is still under way is dropped: no handler runs in here.
    ~virtual_quorum();

    /// Where the handlers run. Never run it yourself: `advance` does.
    boost::asio::io_context& context() noexcept;

    /// The manager for the code that is tested. It runs, and all masters are admitted: their
    /// records say that they are new.
    lock_manager& manager();
    /// One more, as another process has it: a contender. It lives as long as this object.
    lock_manager& add_manager();
    /// For code that has a manager of its own: one that does not run yet. This object must outlive
    /// it.
    lock_manager make_manager();

    /// How many masters there are, alive or not.
    std::size_t size() const noexcept;
    /// Throws `std::out_of_range`.
    virtual_master master(std::size_t index);

    /// The present time. The deadlines of locks compare with it.
    time_point now() const noexcept;
    /// Moves time on, and lets all happen that happens on the way, in its order. Zero: what is due
    /// now. Must not be called from a handler: `std::logic_error`.
    void advance(std::chrono::nanoseconds span);
    /// Moves time on until `done()`, which is asked after each event; `limit` at most. Gives what
    /// `done()` said last.
    bool advance_until(
        const std::function<bool()>& done,
        std::chrono::nanoseconds limit = std::chrono::minutes(1));
    /// The process is stopped for `span`, as by SIGSTOP or a debugger or a pause of its machine:
    /// the masters go on, and nothing else does. What was due meanwhile comes with the next
    /// `advance`, late.
    void freeze(std::chrono::nanoseconds span);

    /// A wait in this time, for what the tested code would use a timer for.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Cancellation
    /// Terminal, partial and total: ends it with `operation_aborted`.
    template <
        boost::asio::completion_token_for<void(error_code)> CompletionToken =
            boost::asio::deferred_t>
    auto async_sleep(std::chrono::nanoseconds span, CompletionToken&& token = {}) {
        return boost::asio::async_initiate<CompletionToken, void(error_code)>(
            initiate_sleep{{context().get_executor()}}, token, this, span);
    }

    /// Somebody else has the lock from now on, on all masters, for `ttl`. Who held it before has
    /// lost it, and learns of that by its next renewal: at a third of its ttl. (A key that is
    /// merely removed is set again by the renewal of a lease that has not ended: guarded protocol.)
    void occupy(std::string_view resource, std::chrono::milliseconds ttl);
    /// On how many masters a live key says that somebody has the lock.
    std::size_t keys_of(std::string_view resource);

private:
    friend class virtual_master;
    struct initiate_sleep : detail::initiation_base {
        template <typename Handler>
        void
        operator()(Handler&& handler, virtual_quorum* quorum, std::chrono::nanoseconds span) const {
            quorum->sleep(span, std::forward<Handler>(handler));
        }
    };

    void sleep(
        std::chrono::nanoseconds span, boost::asio::any_completion_handler<void(error_code)> done);

    std::unique_ptr<virtual_world> world_;
};
/// \}

}}} // namespace redlock::REDLOCK_ABI::testing
