// The testing kit: real masters that a test starts and disrupts, and a manager in virtual time. It
// is a separate dependency, `redlock-testing`; the library does not contain it. See
// docs/testing_kit.md.

#pragma once

#include <redlock/blocking.hpp>
#include <redlock/lock_manager.hpp>

#include <boost/asio/any_completion_handler.hpp>
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

/// A master that a test disrupts: a real one, or one in memory. A handle: its copies are the same
/// master. Functions throw `std::runtime_error` if they fail; `what()` is a sentence.
/// \par Thread safety
/// None: use the handles of one master in one thread.
class master {
public:
    /// Simulates a crash: connections break, and are refused until a restart. A real server gets
    /// SIGKILL.
    void kill();
    /// Starts the master again at the same address, with another run id; kills it before if it is
    /// running. A real one loses all data unless `master_options::durable` was set, and has replied
    /// when this returns, after at most 10 s. One in memory keeps its data, as a durable one does.
    /// Managers reconnect within `config::reconnect_delay_max`. The master is then in quarantine:
    /// it does not vote for slightly longer than `config::max_ttl`.
    void restart();
    /// Same as `restart`, but all data is lost.
    void restart_empty();
    /// Simulates a hang: connections stay open, and nothing is executed until `resume`. A real
    /// server gets SIGSTOP.
    void hang();
    /// Ends a `hang`. Commands that arrived during it are executed.
    void resume();
    /// Executes FLUSHALL: all data is lost, and the process keeps running.
    void flush();
    /// Breaks all connections of clients, which may reconnect at once.
    void cut();
    /// Executes one command, on no connection of a manager. Returns the reply in the format of
    /// redis-cli: integers in decimal, "(nil)", "(error) text", and one line for each element of an
    /// array. A real master must reply within 5 s; in memory it looks at the data of one that was
    /// killed or hangs as well.
    std::string command(const std::vector<std::string>& words) const;

private:
    friend class masters;
    friend class virtual_quorum;
    struct server;
    explicit master(std::shared_ptr<server> at) noexcept : server_(std::move(at)) {}

    std::shared_ptr<server> server_;
};

/// \name Real masters
/// \{

/// Options of real masters.
struct master_options {
    /// The server program: a path, or a name that is searched in PATH. Empty: the environment
    /// variable `REDLOCK_REDIS_SERVER`, else `redis-server`, else `valkey-server`.
    std::string program;
    /// Whether the URLs refer to Unix sockets instead of ports on the loopback interface.
    bool unix_socket = false;
    /// Whether every write is on disk before the reply, so that `restart` keeps the data. Otherwise
    /// a restart loses all data.
    bool durable = false;
    /// Password of the default user. It is not part of the URLs. Empty: none.
    std::string password;
    /// Additional arguments for the server: `{"--maxmemory", "10mb"}`.
    std::vector<std::string> arguments;
};

/// N real, independent masters for one quorum: child processes, each with its own directory for its
/// files. The servers and their files are removed with the
/// last handle of each, even if the process of the test is killed.
///
/// On Linux this cleanup is tied to the *thread* that constructed the object. Construct it in the
/// main thread, or in a thread that lives as long as this object.
class masters {
public:
    /// Starts all servers. Returns when they reply, after at most 10 s. Throws `std::runtime_error`
    /// if the server program is not found, or, with the output of the server, if one does not
    /// start.
    explicit masters(std::size_t count = 3, const master_options& options = {});

    /// Returns one master. Throws `std::out_of_range`.
    master& operator[](std::size_t index) { return all_.at(index); }
    /// Returns the number of masters, alive or not.
    std::size_t size() const noexcept { return all_.size(); }
    /// Returns the URLs of all masters, in order: "redis://127.0.0.1:port" or "unix:///path". They
    /// do not change during the lifetime of this object.
    std::vector<std::string> urls() const;
    /// Writes the memory record of each master (see docs/guarantees.md): no lock with this prefix
    /// has been on it before. Guarded managers with a `config::quarantine` then count their votes
    /// at once. Without it the first contact starts a quarantine. Call it before any manager
    /// connects. It is valid for these processes of the servers only: a restart starts a
    /// quarantine.
    void declare_new(std::string_view key_prefix = "redlock:");

    /// Returns a configuration for these masters that suits a test. It has no quarantine,
    /// because the masters are known to be new, and timeouts for a slow machine (`master_timeout` 2
    /// s, reconnection within 100 ms).
    config make_config() const;

private:
    struct child;
    static child& child_of(const master& one);

    std::vector<master> all_;
    std::string password_;
};
/// \}

/// \name Virtual time
/// \{

struct virtual_world;

/// Masters in memory, and a clock that advances only in calls of the test. The masters execute the
/// same scripts as real ones. It shows how your code
/// reacts to a lost lock, deterministically and without waiting. Its managers are ordinary
/// managers: only the sockets and the timer are replaced.
///
/// Everything runs in the thread of the test, on `context()`, inside `advance`, `advance_until` and
/// what creates a manager.
/// Time advances for the managers and their locks (`held`, `remaining`, renewal, loss). It does not
/// advance for `redlock::clock::now()` and for timers of Asio. Code under test should therefore
/// take its wait function as a parameter, and a test passes `async_sleep`.
/// \par Thread safety
/// None: use this object and its managers in one thread.
class virtual_quorum {
public:
    /// Constructs the masters.
    /// \param masters the number of masters. Range: 1 to 32.
    /// \param settings the configuration of all managers; its `masters` are replaced
    /// \throws std::invalid_argument as `validate`
    explicit virtual_quorum(std::size_t masters = 3, config settings = {});
    /// Drops all operations in progress. No handler runs inside the destructor.
    ~virtual_quorum();

    /// Returns the context on which handlers run. Do not run it yourself: `advance` does.
    boost::asio::io_context& context() noexcept;

    /// Returns the manager for the code under test. The first call advances the time until all
    /// masters are admitted: two round trips, because their memory records show that they are new.
    /// If some were emptied before, that takes longer; if some were killed or hang, a quorum is
    /// enough. It ends after a minute at most.
    lock_manager& manager();
    /// Returns an additional manager, like that of another process, which competes for locks. It
    /// lives as long as this object. Advances the time as the first call of `manager`.
    lock_manager& add_manager();
    /// Returns a manager for code that owns its manager. It is not running yet. This object must
    /// outlive it.
    lock_manager make_manager();
    /// Returns a manager for blocking code, without a thread: a call advances the time until it is
    /// over, with all other events of that time. A call without a limit that nothing ends within an
    /// hour throws `std::logic_error`. This object must outlive it.
    blocking::manager make_blocking_manager();

    /// Returns the number of masters, alive or not.
    std::size_t size() const noexcept;
    /// Returns one master, which must not outlive this object. Throws `std::out_of_range`.
    testing::master master(std::size_t index);
    /// Sets the round trip time of one master from now on. Default: 1 ms. Throws
    /// `std::out_of_range`.
    void answer_after(std::size_t index, std::chrono::nanoseconds span);

    /// Returns the current time. Deadlines of locks compare with it.
    time_point now() const noexcept;
    /// Advances the time by `span` and runs all events of that time in order. With zero, runs the
    /// events that are due now. Throws `std::logic_error` if called from a handler.
    void advance(std::chrono::nanoseconds span);
    /// Advances the time until `done()` returns true, at most by `limit`. Checks `done()` after
    /// each event. Returns the last result of `done()`.
    bool advance_until(
        const std::function<bool()>& done,
        std::chrono::nanoseconds limit = std::chrono::minutes(1));
    /// Suspends the process for `span`, as SIGSTOP, a debugger or a pause of the machine does: the
    /// masters continue, and nothing else does. Events that were due during that time run late, at
    /// the next `advance`.
    void freeze(std::chrono::nanoseconds span);

    /// Waits for `span` in virtual time. Replaces a timer in the code under test.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Cancellation
    /// Terminal, partial and total: ends the wait with `operation_aborted`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_sleep(std::chrono::nanoseconds span, CompletionToken&& token = {}) {
        return detail::initiate<void(error_code), &virtual_quorum::sleep>(
            context().get_executor(), std::forward<CompletionToken>(token), this, span);
    }

    /// Gives the lock to another owner on all masters, for `ttl`. The previous holder has lost the
    /// lock, and its next renewal, at a third of its ttl, detects this. (A key that is only removed
    /// would be set again by the renewal of a valid lease: guarded protocol.)
    void occupy(std::string_view resource, std::chrono::milliseconds ttl);
    /// Returns the number of masters on which a live key shows that the lock is held.
    std::size_t keys_of(std::string_view resource);

private:
    struct in_memory;

    void sleep(
        std::chrono::nanoseconds span, boost::asio::any_completion_handler<void(error_code)> done);

    std::unique_ptr<virtual_world> world_;
};
/// \}

}}} // namespace redlock::REDLOCK_ABI::testing
