// What a quorum is and how to reach it.

#pragma once

#include <redlock/error.hpp>
#include <redlock/logger.hpp>
#include <redlock/observer.hpp>
#include <redlock/options.hpp>
#include <redlock/protocol.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

/// How the bytes travel to a master.
enum class transport : std::uint8_t { tcp, tls, unix_socket };

/// One master. Made from a URL, or member by member.
struct endpoint {
    redlock::transport transport = transport::tcp; ///< how it is reached
    std::string host;                              ///< name or address; not for Unix sockets
    std::uint16_t port = 6379;                     ///< 1 to 65535; not for Unix sockets
    std::string path;                              ///< of the Unix socket, absolute
    std::string username;                          ///< ACL user; empty: the default user
    std::string password;                          ///< empty: no AUTH is sent
    int database = 0; ///< 0 to 15 unless the server is told otherwise; at most 65535

    endpoint() = default;

    // Not explicit: a list of URLs is a list of masters.
    // NOLINTBEGIN(google-explicit-constructor)

    /// From a URL; the port defaults to 6379, the database to 0:
    /// \code
    /// redis://[[user]:password@]host[:port][/database]      TCP
    /// rediss://[[user]:password@]host[:port][/database]     TLS
    /// unix://[[user]:password@]/path/to/socket[?db=database]
    /// \endcode
    /// Special characters in user and password are percent-encoded. Throws `std::invalid_argument`
    /// with a sentence that says what is wrong and never holds the password.
    endpoint(std::string_view url);
    /// \copydoc endpoint(std::string_view)
    endpoint(const char* url) : endpoint(std::string_view(url)) {}
    /// \copydoc endpoint(std::string_view)
    endpoint(const std::string& url) : endpoint(std::string_view(url)) {}

    // NOLINTEND(google-explicit-constructor)

    /// Member by member; names are not looked up.
    friend bool operator==(const endpoint&, const endpoint&) = default;
};

/// "10.0.0.1:6379", "[::1]:6379/2", "/run/redis.sock": for people and logs, without user or
/// password.
std::string to_string(const endpoint&);

/// How a `rediss://` master is verified. Files are in PEM format and read at construction.
struct tls_options {
    bool verify = true;           ///< check the certificate's chain and that it names the host
    std::string ca_file;          ///< trusted authorities; empty: the system's
    std::string certificate_file; ///< the client's certificate chain, if the server asks for one
    std::string private_key_file; ///< its key; both or none
    std::string server_name; ///< the name to verify and to send (SNI); empty: the endpoint's host
};

/// Whether a master may vote before it is known to have remembered for `max_ttl`.
enum class quarantine : std::uint8_t {
    /// Not before: it may have forgotten locks that are still held. The "delayed restart" of the
    /// Redis page. Counts from the first contact of this quorum with the server, from each restart
    /// and from what else may have lost its data. So a new quorum opens after `max_ttl`.
    on,
    /// At once. Only for masters that are known to be new (tests). Unsafe else: a restart under a
    /// holder lets a second one in. `health` and the log say so.
    off,
};

/// How a waiter learns that a lock may be free.
enum class wake_up : std::uint8_t {
    /// A release is published on the channel `prefix{resource}:free` of every master (an empty
    /// prefix: `resource:free`), and who waits subscribes to it, over one more connection to each
    /// master. A notification only starts an attempt. Waiters poll in addition: with a majority
    /// admitted, an attempt begins within 2 s after the lock became free even if no notification
    /// arrives. What the server refuses (PUBLISH, SUBSCRIBE, the channel) costs latency only.
    push,
    /// Nothing is published or subscribed to; waiters ask again after `retry_delay_min` to
    /// `retry_delay_max`. For servers whose ACL or whose cost forbids the other. Their releases
    /// wake nobody: processes that share locks should agree.
    poll,
};

/// Everything that a manager needs to know. Goes into its constructor; one per process and quorum.
/// All members have defaults but `masters`. All processes that lock the same resources must agree
/// on `masters`, `key_prefix` and `max_ttl`; not on `protocol`.
struct config {
    /// The masters: 1 to 32, independent of each other (no replicas of one another, no cluster),
    /// each server once. An odd number: an even one tolerates no more failures than one less.
    std::vector<endpoint> masters;

    /// What is said to the masters.
    redlock::protocol protocol = protocol::guarded;

    /// Comes before the resource's name in every key, so that an ACL can allow just these keys and
    /// user data is not in the way: the lock is `prefix{resource}`, its fencing counter
    /// `prefix{resource}:fence`, a master's record `prefix:epoch`. Empty: the resource's name is
    /// the lock's key as it stands, to share locks with other Redlock clients; then no resource may
    /// be named `:epoch`, nor `{...}` with one of these behind it: `:fence`; `:queue` and
    /// `:queue:until` (`fairness::fifo`); `:readers` and `:intent` (`shared_mutex`); `:slot:` and a
    /// number, and the same with `:fence` (`slot_pool`). At most 256 bytes.
    std::string key_prefix = "redlock:";

    /// The longest lease that any process of the deployment uses, and so the quarantine of a
    /// restarted master. 10 ms to 24 h.
    std::chrono::milliseconds max_ttl{30'000};

    /// Allowance for clocks that run at different speeds, as a share of the ttl: 0 to 0.5. A lease
    /// of ttl T is believed for `T - (T * factor + margin)`.
    double clock_drift_factor = 0.01;
    /// The fixed part of that allowance; the precision of Redis' expiry is 1 ms. 0 to 10 s.
    std::chrono::milliseconds clock_drift_margin{2};

    /// How far the masters' wall clocks may be apart (guarded protocol; NTP keeps them within
    /// some ms). A part of the quarantine: a fencing counter that a master lost starts again from
    /// its clock, which must be past all that the others have counted. 0 to 1 h.
    std::chrono::milliseconds clock_offset_bound{1'000};

    /// Whether a restarted master must wait before it votes.
    redlock::quarantine quarantine = quarantine::on;

    /// From the look-up of a master's name to the end of its handshake. 1 ms to 1 h.
    std::chrono::milliseconds connect_timeout{2'000};
    /// A master that has not answered for this long votes `timed_out`, and at once until it answers
    /// again. Small against the ttl (the Redis page: 5 to 50 ms for 10 s), larger than the round
    /// trip. 1 ms to 1 h.
    std::chrono::milliseconds master_timeout{100};
    /// The delay before a lost master is connected again: jittered, growing from the first to the
    /// second. 1 ms to 1 h, the second at least the first.
    std::chrono::milliseconds reconnect_delay_min{50};
    std::chrono::milliseconds reconnect_delay_max{2'000}; ///< see `reconnect_delay_min`
    /// An idle connection is checked with PING this often; one that stays silent this long beyond
    /// `master_timeout` is dropped. 1 ms to 1 h.
    std::chrono::milliseconds health_check_interval{1'000};
    /// The delay between two attempts of one acquire: decorrelated jitter, never less than the
    /// measured round trip of a majority. 1 ms to 1 h, the second at least the first. A waiter
    /// polls every 2 s at the latest, unless `retry_delay_min` is longer.
    std::chrono::milliseconds retry_delay_min{2};
    std::chrono::milliseconds retry_delay_max{200}; ///< see `retry_delay_min`

    /// A lease that is released while others of this process wait for it may pass to the next of
    /// them without a word to the masters: so many times in a row, then the waiters of other
    /// processes have their chance. 0 (never) to 1,000,000.
    std::size_t hand_overs_max = 64;

    /// How a waiter learns of a release.
    wake_up wake_ups = wake_up::push;

    /// For masters whose endpoint has none of its own.
    std::string username;
    std::string password; ///< see `username`; never printed

    /// Shown by `CLIENT LIST`. No spaces or control characters; empty: none is set.
    std::string client_name = "redlock";

    /// How `rediss://` masters are verified.
    tls_options tls;

    /// Silent by default.
    logger log;

    /// Told of every operation and of every lock, if there is one.
    std::shared_ptr<redlock::observer> observer;
    /// A lock that has been held for longer is warned of, once: in the log and to the observer.
    /// 0: none is. 0 ms to 24 h.
    std::chrono::milliseconds held_warning{0};
    /// When more acquires of this manager wait for one resource, that is warned of: in the log and
    /// to the observer. 0: it is not.
    std::size_t contention_warning = 0;
};

/// Checks a configuration, as the constructor of `lock_manager` does. Returns no error, and
/// warnings if there are any (an even number of masters, say) in `reason`, one a line; or
/// `errc::invalid_config` with a sentence in `reason` that names the value and the allowed range.
/// Does no I/O: the TLS files are not read. Thread-safe.
error_code validate(const config& config, std::string& reason);

/// Checks `options` against `config`, as `async_acquire` does. Returns no error, or
/// `errc::invalid_argument` with a sentence in `reason` that names the value and the allowed range.
error_code validate(const acquire_options& options, const config& config, std::string& reason);

/// Checks the name of a resource: 1 to `resource_name_max` bytes, of any value. Returns no error,
/// or `errc::invalid_argument` with a sentence in `reason`.
error_code validate_resource(std::string_view resource, std::string& reason);

/// Checks the form of a lock's token, as `lock::token` gives it: 40 hexadecimal digits in lower
/// case. Returns no error, or `errc::invalid_argument` with a sentence in `reason` that does not
/// show the token.
error_code validate_token(std::string_view lock_token, std::string& reason);

}} // namespace redlock::REDLOCK_ABI
