// The configuration of a quorum.

#pragma once

#include <redlock/logger.hpp>
#include <redlock/observer.hpp>
#include <redlock/options.hpp>
#include <redlock/protocol.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

/// Address and credentials of one master. Construct it from a URL, or set the members.
struct endpoint {
    /// Host name or IP address, at most 255 characters; unused with a `path`.
    std::string host;
    /// TCP port, 1 to 65535; unused with a `path`.
    std::uint16_t port = 6379;
    bool tls = false;     ///< whether the connection is encrypted; not with a `path`
    std::string path;     ///< absolute path of a Unix socket; empty: TCP
    std::string username; ///< ACL user; empty: the default user
    std::string password; ///< password; empty: AUTH is not sent
    /// Database number. Range: 0 to 65535; a server has 16 databases unless configured otherwise.
    int database = 0;
    /// Name of the master, which all clients must use for it. Empty: its address and database. Set
    /// it if clients reach the master under different addresses, or if its address may change. 1 to
    /// 64 letters, digits, '-', '_' and '.'.
    std::string name;

    endpoint() = default;

    /// Constructs an endpoint from a URL, any text that converts to `std::string_view`. The default
    /// port is 6379, the default database 0.
    /// \code
    /// redis://[[user]:password@]host[:port][/database][?name=name]          TCP
    /// rediss://[[user]:password@]host[:port][/database][?name=name]         TLS
    /// unix://[[user]:password@]/path/to/socket[?db=database][&name=name]
    /// \endcode
    /// Special characters in user and password are percent-encoded.
    /// \throws std::invalid_argument if the URL is invalid; `what()` describes the error and never
    ///   contains the password.
    template <std::convertible_to<std::string_view> Url>
    // Implicit on purpose: a list of URLs is a list of masters.
    // NOLINTNEXTLINE(google-explicit-constructor)
    endpoint(const Url& url) : endpoint(parse(url)) {}

    /// Compares member by member. Host names are not resolved.
    friend bool operator==(const endpoint&, const endpoint&) = default;

private:
    static endpoint parse(std::string_view url);
};

/// Returns the endpoint as text for people and logs, without user and password: "10.0.0.1:6379",
/// "[::1]:6379/2", "/run/redis.sock".
std::string to_string(const endpoint&);

/// TLS settings of `rediss://` masters. Files are in PEM format, of at most 4 MiB. They are read by
/// the constructor of the manager, which throws if one cannot be used, and at each connection. So
/// they can be replaced while the manager runs. A connection for which a file cannot be used fails,
/// names it in `health`, and is tried again.
struct tls_options {
    bool verify = true;           ///< verify the certificate chain and the host name
    std::string ca_file;          ///< trusted certificate authorities; empty: those of the system
    std::string certificate_file; ///< certificate chain of the client, if the server requires one
    std::string private_key_file; ///< private key of the client certificate; set both or neither
    /// Name to verify and to send (SNI). Empty: the host of the endpoint.
    std::string server_name;
};

/// Configuration of a manager; one per process and quorum. All members except `masters` have
/// defaults. All processes that lock the same resources must use the same `masters` and
/// `key_prefix`. The `protocol` may differ.
struct config {
    /// The masters. They must be independent of each other: no replicas of one another, no cluster,
    /// each server once. Use an odd number: 4 masters tolerate one failure, the same as 3. Range: 1
    /// to 32 masters. No default.
    std::vector<endpoint> masters;

    /// The protocol used with the masters. Default: guarded.
    redlock::protocol protocol = protocol::guarded;

    /// Prefix of all keys, so that an ACL can allow just these keys and they do not collide with
    /// other data. The lock is `prefix{resource}`, its fencing counter `prefix{resource}:fence`,
    /// and the memory record of a master `prefix:epoch`. At most 256 bytes. Default: "redlock:".
    ///
    /// Empty: the name of the resource is the key of the lock, to share locks with other Redlock
    /// clients. In this case do not use these names for resources:
    /// - `:epoch`
    /// - `{...}` followed by `:fence`, by `:queue` or `:queue:until` (`acquire_options::fifo`), or
    /// by
    ///   `:readers` or `:intent` (`lock_mode`)
    /// - `{...}` followed by `:slot:` and a number, with or without `:fence` (slots)
    std::string key_prefix = "redlock:";

    /// Longest lease that this process uses. The masters record the longest of all processes; it
    /// determines the quarantine of a restarted master. Range: 10 ms to 24 h, or 0.
    ///
    /// 0: what the masters have recorded, 30 s if this process founds the quorum. `health::max_ttl`
    /// reports it, and an acquisition with a longer ttl fails with `errc::invalid_argument`. A
    /// larger value is recorded on each master before its first vote, which excludes masters that
    /// are younger than the longer quarantine. A smaller value limits only the leases of this
    /// process.
    ///
    /// Plain protocol: nothing is recorded. All processes must use the same value; 0 is 30 s.
    /// Default: 0.
    std::chrono::milliseconds max_ttl{0};

    /// Allowance for clocks that run at different rates, as a fraction of the ttl. A lease of ttl T
    /// is relied on for `T - (T * factor + margin)`. Range: 0 to 0.5. Default: 0.01.
    double clock_drift_factor = 0.01;
    /// Fixed part of the clock drift allowance. Redis expires keys with a precision of 1 ms. Range:
    /// 0 to 10 s. Default: 2 ms.
    std::chrono::milliseconds clock_drift_margin{2};

    /// Maximum clock offset between masters (guarded protocol). NTP keeps it within a few
    /// milliseconds. The quarantine contains it twice, because a lost fencing counter restarts from
    /// the clock of its master or from a value that is at most this far ahead. That must be past
    /// every value that the other masters have counted. Range: 0 to 1 h. Default: 1 s.
    std::chrono::milliseconds clock_offset_bound{1'000};

    /// Whether a master that may have lost its data waits before it votes, until every lease that
    /// it may have lost has expired: the "delayed restart" of the Redis page. The quarantine starts
    /// with the first contact of this quorum with the server, with each restart, and with each
    /// other possible loss of data. A new quorum therefore grants its first lock after slightly
    /// more than its `max_ttl`. Default: true.
    ///
    /// false: masters vote at once. Use it only for masters that are known to be new, as in tests.
    /// Otherwise it is unsafe: if a master restarts while a lock is held, a second holder may get
    /// the lock. `health` and the log report this setting. What the client would have asked for is
    /// recorded, and counts from the first client on that has a quarantine.
    bool quarantine = true;

    /// Timeout for connecting to a master, from name resolution to the end of the handshake. Range:
    /// 1 ms to 1 h. Default: 2 s.
    std::chrono::milliseconds connect_timeout{2'000};
    /// Time without a reply after which a master is counted as `timed_out`. Until it replies again,
    /// it is counted so without waiting. Choose it larger than the round trip time and much smaller
    /// than the ttl (the Redis page: 5 to 50 ms for 10 s). Range: 1 ms to 1 h. Default: 100 ms.
    std::chrono::milliseconds master_timeout{100};
    /// Maximum delay before reconnecting to a lost master. The delay has jitter, and grows from a
    /// fortieth of this. Range: 1 ms to 1 h. Default: 2 s.
    std::chrono::milliseconds reconnect_delay_max{2'000};
    /// Interval at which each master is checked with INFO: it votes only while it is fit to. The
    /// interval is shortened to a tenth of `max_ttl`, but not below 100 ms. A connection without a
    /// reply for `health_check_interval` plus `master_timeout` is closed. Range: 1 ms to 1 h.
    /// Default: 1 s.
    std::chrono::milliseconds health_check_interval{1'000};
    /// Minimum delay between two attempts of one acquire. Delays have decorrelated jitter and are
    /// never shorter than the measured round trip time of a majority. A waiter polls at least every
    /// 2 s, unless this value is larger. Range: 1 ms to 1 h. Default: 2 ms.
    std::chrono::milliseconds retry_delay_min{2};
    /// Maximum of these delays. A waiter that is notified of releases does not repeat its attempts:
    /// it waits for a notification, for the end of the holder's lease, or for the poll.
    /// Range: `retry_delay_min` to 1 h. Default: 200 ms.
    std::chrono::milliseconds retry_delay_max{200};

    /// Maximum duration of a series of local handoffs, counted from the first one. In a local
    /// handoff the lease of a released lock passes to the next waiter of this process without a
    /// round trip to the masters. At least half of the waiter's ttl is left then; with
    /// `renew` off all of it, except for the clock drift and a twentieth. After this time, or
    /// after eight round trips if they take longer, waiters of other processes get a chance. Range:
    /// 0 to 1 h. Default: 1 ms. 0 disables local handoff.
    std::chrono::milliseconds local_handoff_time{1};

    /// Whether a release notifies waiters. Default: true.
    ///
    /// true: a release is published on the channel `prefix{resource}:free` of every master (with an
    /// empty prefix: `resource:free`). Waiters subscribe to it over one additional connection to
    /// each master. A notification only starts an attempt. Waiters poll as well: with a majority
    /// admitted, an attempt starts within 2 s after the lock became free, even if no notification
    /// arrives. If the server refuses PUBLISH, SUBSCRIBE or the channel, this costs latency only.
    ///
    /// false: nothing is published or subscribed to. Waiters retry after `retry_delay_min` to
    /// `retry_delay_max`. Use it for servers whose ACL or cost rules out notifications. Releases by
    /// such a process send no notifications, so all processes that share locks should use the same
    /// value.
    bool release_notifications = true;

    /// Whether this manager founds the quorum, with `masters` as its members, if none of them
    /// belongs to one (guarded protocol). With `false` it waits for another client to do so, as a
    /// monitor should. Default: true.
    bool founds_quorum = true;

    /// ACL user for masters whose endpoint has no credentials of its own. Default: empty.
    std::string username;
    /// Password for these masters; never printed. Default: empty.
    std::string password;
    /// File with the password in its first line, in place of `password`: a regular file of at most
    /// 4 MiB. It is read by the constructor of the manager, which throws if it cannot be used, and
    /// at each connection. So the password can be replaced while the manager runs. A connection
    /// for which the file cannot be used fails, names it in `health`, and is tried again.
    /// Default: empty, no file.
    std::string password_file;

    /// Connection name, as shown by `CLIENT LIST`. Printable ASCII characters without spaces.
    /// Default: "redlock". Empty: no name is set.
    std::string client_name = "redlock";

    /// TLS settings of `rediss://` masters. Default: those of `tls_options`.
    tls_options tls;

    /// Log level and sink. Default: no output.
    logger log;

    /// Observer that is notified of every operation and every lock. Default: null, no observer.
    std::shared_ptr<redlock::observer> observer;
    /// Time after which a held lock causes one warning, in the log and to the observer. Range: 0 to
    /// 24 h. Default: 0. 0 disables.
    std::chrono::milliseconds held_warning{0};
    /// Number of waiting acquisitions for one resource above which this manager warns, in the log
    /// and to the observer. Default: 0. 0 disables.
    std::size_t contention_warning = 0;
};

/// Validates a configuration, as the constructor of `lock_manager` does. Does no I/O: the TLS files
/// are not read. Thread-safe.
/// \throws std::invalid_argument if a value is invalid; `what()` names the first one and what is
///   allowed, such as "redlock: master_timeout is 0 ms; allowed: 1 ms to 3600000 ms". It never
///   contains a password.
void validate(const config& config);

/// Validates `options` against the configuration of the manager, as `async_acquire` does.
/// Thread-safe.
/// \throws std::invalid_argument if a value is invalid, with a text as above
void validate(const acquire_options& options, const config& config);

}} // namespace redlock::REDLOCK_ABI
