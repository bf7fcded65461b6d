// Masters and the connections to them. A connection is two streams of bytes, each in order; what
// was written may arrive long after its writer went away, and is executed all the same.

#pragma once

#include "checker.hpp"
#include "clocks.hpp"
#include "events.hpp"
#include "figures.hpp"
#include "memory.hpp"
#include "plan.hpp"
#include "random.hpp"
#include "support/engine_host.hpp"

#include <map>

namespace simulation {

struct lock_write;

/// An abandoned lock, to which another client may attach. Its work goes on until the deadline, as
/// that of a shell script with a token does, unless an attach succeeds.
struct abandoned_lock {
    std::string token;
    std::vector<std::size_t> ownerships;
    unsigned resource;
    speech speaks;
    bool fenced;
    bool dated; // no command that sets its key is executed late
};

/// What all parts of a run share.
struct surroundings {
    const plan& what;
    figures& count;
    std::string* story; // a line per event, for people; null: usually nobody reads it
    checker judge;
    nanos now = 0;
    event_queue queue = {};
    std::vector<abandoned_lock> abandoned = {};
    std::uint64_t digest = 0; // of all that `witness` was called with, in order

    /// Adds bytes that a client wrote, or a report of its engine, to the digest of this run.
    void witness(nanos at, std::uint64_t origin, std::string_view text) noexcept;

    template <typename... Parts>
    void
    note(std::string_view who, fmt::format_string<const Parts&...> line, const Parts&... parts) {
        if (story != nullptr) {
            *story += fmt::format("{:6}.{:06} {:<7} ", now / ms, now % ms, who)
                      + fmt::format(line, parts...) + "\n";
        }
    }
    template <typename... Parts>
    void fail(promise broken, fmt::format_string<const Parts&...> line, const Parts&... parts) {
        judge.fail(broken, now, line, parts...);
    }
};

using redlock::test::connection_id;
using redlock::test::no_connection;

/// The process at the client's end of connections, each of which has a number there: its place.
class connection_user {
public:
    virtual void connected(unsigned place, bool accepted) = 0;
    virtual void arrived(unsigned place, std::string bytes) = 0;
    virtual void hung_up(unsigned place) = 0;

protected:
    ~connection_user() = default;
};

class network {
public:
    network(surroundings& here, lua_machine& lua);

    /// \name A client's side
    /// \{
    connection_id
    open(connection_user& user, unsigned client, unsigned place, unsigned master, wire kind);
    void leave(connection_id);
    void send(connection_id, std::string bytes);
    /// \}

    /// Begins a fault of the network or of masters, or ends one that lasts.
    void change(const fault&, bool begins);
    /// After a crash: the master is back, or what has taken its place.
    void boot(const fault&, store data);
    const store& data_of(int master) const {
        return masters_[static_cast<std::size_t>(master)].process.data;
    }

    /// Whether no bytes are in flight on the command connections of a client.
    bool quiet(unsigned client) const;
    /// Lock keys that are there.
    std::vector<std::string> lock_keys();

    /// Records the start of the attempt with this token. Called where the token is drawn.
    void note_attempt(std::string token, nanos began);
    /// An attach to the lock with this token begins.
    void note_attach(std::string_view token, nanos now);
    /// A holder with this token saw that it holds the lock until then.
    void note_deadline(std::string_view token, nanos deadline);
    /// Returns since when the lock is held with this token, by any owner.
    nanos note_holder(std::string_view token);
    /// Whether an acquire of that form finds the lock with this key free on that master.
    bool is_free(unsigned master, const std::string& key, taking how);
    /// When the last attempt of a client on that lock was executed by any master.
    nanos asked_at(unsigned client, std::string_view key) const;

private:
    struct attempt {
        nanos began = 0;
        nanos over = 0; // no extension is executed after it
        nanos held_since = -1;
    };

    struct chunk {
        nanos at;
        std::string bytes;
    };
    struct stream {
        std::vector<chunk> chunks;
        std::size_t head = 0;
        nanos last = 0;

        bool ready(nanos now) const noexcept {
            return head < chunks.size() && chunks[head].at <= now;
        }
    };
    struct connection {
        connection_user* user = nullptr;
        unsigned client = 0;
        unsigned place = 0;
        unsigned master = 0;
        wire kind = wire::commands;
        bool accepted = false;
        bool client_gone = false;
        bool server_gone = false;
        bool replies_lost = false; // broken
        stream there;
        stream back;
        std::string input; // an incomplete command
        std::string lie;   // in place of the next reply
    };
    struct link {
        generator random;
        unsigned blocked_there = 0;
        unsigned blocked_back = 0;
        unsigned refused = 0;
        nanos slow_handshakes = 0; // by up to this
    };
    struct master {
        unsigned number;
        server process;
        skewed_clock wall; // in nanoseconds
        audience listeners = {};
        unsigned down = 0;
        unsigned stalled = 0;
        unsigned boots = 0;

        std::int64_t wall_us(nanos now) const noexcept { return wall.at(now) / 1000; }
    };

    std::size_t link_number(unsigned client, unsigned master, wire kind) const noexcept {
        return 2 * (client * masters_.size() + master) + static_cast<std::size_t>(kind);
    }
    template <typename F>
    void for_links(const fault& what, F change);
    template <typename F>
    void for_masters(int which, F change);
    bool concerns(const fault& what, const connection& one) const noexcept;
    link& link_of(const connection& one) {
        return links_[link_number(one.client, one.master, one.kind)];
    }
    nanos delay(link& way);
    void connect(connection_id);
    void arrive_there(connection_id);
    void arrive_back(connection_id);
    void hang_up(connection_id);
    void expect_there(connection_id, nanos at);
    void expect_back(connection_id, nanos at);
    void expect_hang_up(connection_id, nanos after);
    void execute(connection& one, connection_id id, const chunk& what);
    void send_back(connection_id id, std::string bytes);
    std::int64_t publish(master& from, std::string_view channel, std::string_view text);
    void retry(const fault& over);
    void refuse(const fault&, bool begins);
    void break_connections(const fault&);
    void crash(unsigned master);
    void say(master& one, const std::vector<std::string_view>& words);
    template <typename Which>
    std::size_t remove_keys(master& one, Which which);
    void scatter(connection& one, connection_id id, bool late, nanos late_max);
    std::string new_run_id(master& one);

    void note_asked(unsigned client, std::span<const lock_write> writes);
    void check_keys(master& where, std::span<const lock_write> writes);
    void check_key(master& where, const lock_write& what, std::int64_t expires_ms);
    std::int64_t expiry_of(master& where, std::string_view key, std::string_view token);
    attempt* find_attempt(std::string_view token);
    nanos slow(nanos span) const noexcept;

    surroundings& here_;
    std::vector<master> masters_;
    std::vector<link> links_;
    std::vector<connection> connections_;
    std::map<std::string, attempt, std::less<>> attempts_; // by token
    std::map<std::string, nanos, std::less<>> asked_;      // by client and lock key
    std::vector<std::string_view> words_;
    std::string replies_;
};

} // namespace simulation
