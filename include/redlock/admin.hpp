/// \file
/// What an operator does to the locks of a quorum without holding them: lists them, and releases
/// one whose holder is gone. No lock needs it. The functions block, each with connections of its
/// own, and may be called from any thread. To change the masters of a quorum, see `config::change`.

#pragma once

#include <redlock/config.hpp>
#include <redlock/error.hpp>
#include <redlock/version.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace admin {

/// What was done on one master.
struct master_result {
    std::string endpoint; ///< without a password
    bool done = false;    ///< `list`: it was read. `force_release`: the holder has no key there.
    std::string text;     ///< what was done, or why not; it may contain what the server has sent
};

/// The locks of a quorum.
struct held_locks {
    /// Resources of which any master has the key, in alphabetical order. Each may have ended since,
    /// or be held by a minority only: `lock_manager::async_query` shows it. The names come from the
    /// servers: print them with care.
    std::vector<std::string> resources;
    std::vector<master_result> masters; ///< in the order of the configuration
};

/// Reads the names of all keys from each master, a thousand per call, for at most a minute.
/// At most 100,000 locks per master are read.
/// \throws std::invalid_argument the configuration breaks a rule, or its `key_prefix` is empty, so
/// that locks cannot be distinguished from other keys
[[nodiscard]] held_locks list(const config& quorum);

/// When a lock is free after a release by force.
enum class force : std::uint8_t {
    /// At the end of the current lease: by then the holder must have stopped. It learns of the
    /// release at its next renewal.
    after_lease,
    /// At once, so that there are two holders until the next renewal. For a holder that is known to
    /// be dead.
    at_once,
};

/// What `force_release` did.
struct force_result {
    bool released = false;              ///< by a majority; a living holder can restore the others
    std::vector<master_result> masters; ///< in the order of the configuration
};

/// Releases a lock without its holder, where a master has the token that it reads first. In the
/// guarded protocol, a master is not touched whose memory record says that it, or a majority of its
/// members, is not in this configuration: it belongs to another quorum.
/// \throws std::invalid_argument the configuration or the name breaks a rule
force_result
force_release(const config& quorum, std::string_view resource, force when = force::after_lease);

/// What a lock consists of on each master.
struct lock_keys {
    std::string lock;        ///< string with the owner's token, or with `readers`
    std::string fence;       ///< string with the fencing counter
    std::string readers;     ///< sorted set of the tokens of readers
    std::string intent;      ///< string: somebody waits for the readers, and keeps new ones out
    std::string queue;       ///< sorted set: the fair queue
    std::string queue_until; ///< sorted set: when the places in the queue end
    std::string channel;     ///< of the release notifications; not a key
    std::string record;      ///< string: the memory record of the master, the same for all locks
};

/// Returns the names of the keys and of the channel of a lock. The ACL of a client must allow them,
/// and no other program may use them. Thread-safe.
lock_keys keys_of(const config& quorum, std::string_view resource);

/// The reply of a server.
struct reply {
    /// Its type.
    enum class kind : std::uint8_t {
        text,    ///< a string or a status
        number,  ///< an integer
        list,    ///< an array
        nothing, ///< nil
        error,   ///< an error of the server
    };
    kind what = kind::nothing; ///< its type
    std::string text;          ///< also of an error
    std::int64_t number = 0;   ///< of `number`
    std::vector<reply> items;  ///< of `list`

    /// Whether it is an error.
    bool failed() const noexcept { return what == kind::error; }
};

/// The server cannot be reached, does not reply, or does not speak RESP.
class connection_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A connection to one master, for one command at a time. Connects as the library does: the same
/// URLs, credentials, TLS and times. Replies are limited to 4 MiB and 65,536 elements.
class connection {
public:
    /// Connects and logs in.
    /// \throws connection_error
    connection(const endpoint& master, const config& quorum);
    ~connection();
    connection(connection&&) noexcept;            ///< the other one is of no use afterwards
    connection& operator=(connection&&) noexcept; ///< closes its own connection

    /// Sends a command and waits for its reply, at most 2 s. An error of the server is a reply.
    /// \throws connection_error after which the connection is of no use
    reply ask(const std::vector<std::string_view>& words);

    /// Time until the server's certificate expires; empty without TLS.
    std::optional<std::chrono::hours> certificate_left();

private:
    class wire;
    std::unique_ptr<wire> wire_;
};

}}} // namespace redlock::REDLOCK_ABI::admin
