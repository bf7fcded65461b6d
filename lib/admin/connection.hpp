// What the library and the tool ask of one master without a manager: a blocking connection, and the
// names of the keys of a lock.

#pragma once

#include "core/bytes/resp.hpp"

#include <redlock/config.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

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

/// Returns the names of the keys and of the channel of a lock. Thread-safe.
lock_keys keys_of(const config& quorum, std::string_view resource);

/// The reply of a server, which lasts longer than that of `core`.
struct reply {
    core::reply_type type = core::reply_type::nil;
    std::string text;         ///< also of an error
    std::int64_t number = 0;  ///< of an integer
    std::vector<reply> items; ///< of an array

    /// Whether it is an error.
    bool failed() const noexcept { return type == core::reply_type::error; }
};

/// The server cannot be reached, does not reply, or does not speak RESP.
class connection_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The server was reached, and replied with an error to the first commands.
class refused_error : public connection_error {
public:
    using connection_error::connection_error;
};

/// \name Limits for replies, in bytes: far above what any command here returns
/// \{
inline constexpr std::size_t usual_reply_max = std::size_t{256} * 1024;
inline constexpr std::size_t scan_reply_max = std::size_t{2} * 1024 * 1024; ///< a thousand names
/// \}

/// A connection to one master, for one command at a time. Connects as the library does: the same
/// URLs, credentials, TLS and times.
class connection {
public:
    /// Connects and logs in.
    /// \throws connection_error
    connection(const endpoint& master, const config& quorum);

    /// Sends a command and waits for its reply, at most 2 s. An error of the server is a reply. A
    /// reply that is longer than `longest` bytes, or has an element for each 64 of these, is an
    /// error of the connection.
    /// \throws connection_error after which the connection is of no use
    reply ask(const std::vector<std::string_view>& words, std::size_t longest = usual_reply_max);

    /// Time until the server's certificate expires; empty without TLS.
    std::optional<std::chrono::hours> certificate_left();

private:
    class wire;
    std::unique_ptr<boost::asio::io_context> io_; // ends last: what is pending keeps the wire
    std::shared_ptr<wire> wire_;
};

}}} // namespace redlock::REDLOCK_ABI::detail
