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
#include "timeline.hpp"

#include <initializer_list>

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
    nanos now = 0;
    event_queue queue;
    checker judge;
    figures count;
    timeline& story;
    std::vector<abandoned_lock> abandoned = {};
};

using redlock::test::connection_id;
using redlock::test::no_connection;

class network {
public:
    network(surroundings& here, lua_machine& lua);

    /// \name A client's side
    /// \{
    /// `place`: the client's number for the connection.
    connection_id open(unsigned client, unsigned place, unsigned master, wire kind);
    void leave(connection_id);
    void send(connection_id, std::string bytes);
    /// Returns the bytes that have arrived; empty during a partition.
    std::string take(connection_id);
    unsigned client_of(connection_id id) const { return connections_[id].client; }
    unsigned place_of(connection_id id) const { return connections_[id].place; }
    /// \}

    /// \name Events
    /// \{
    enum class reception : std::uint8_t { accepted, refused, nothing };
    reception connect(connection_id);
    void arrive_there(connection_id);
    /// Returns whether the client is notified of the break now. If it is partitioned, it is
    /// notified later.
    bool hang_up(connection_id);
    /// \}

    /// \name Faults; master -1: all masters
    /// \{
    void partition(const fault&, bool begins);
    void refuse(const fault&, bool begins);
    void break_connections(const fault&);
    void slow_handshakes(const fault&, bool begins);
    void stall(int master, bool begins);
    void crash(unsigned master);
    void boot(unsigned master, std::optional<store> data);
    void promote(unsigned master, store data);
    void take_over(unsigned master);
    void say(int master, std::initializer_list<std::string_view> words);
    void remove_keys(int master, std::int64_t which);
    void hush(int master, bool begins);
    void let_evict(int master, bool may);
    void evict(int master);
    void replace(unsigned master, unsigned by);
    void step(int master, std::int64_t by_us);
    const store& data_of(unsigned master) const { return masters_[master].process.data; }
    /// \}

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
        std::string token;
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
    };
    struct link {
        generator random;
        unsigned blocked_there = 0;
        unsigned blocked_back = 0;
        unsigned refused = 0;
        nanos slow_handshakes = 0; // by up to this
    };
    struct master {
        server process;
        audience listeners;
        skewed_clock wall; // in nanoseconds
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
    bool concerns(const fault& what, const connection& one) const noexcept;
    link& link_of(const connection& one) {
        return links_[link_number(one.client, one.master, one.kind)];
    }
    nanos delay(link& way);
    void execute(connection& one, connection_id id, const chunk& what);
    void send_back(connection_id id, std::string bytes);
    std::int64_t publish(unsigned master, std::string_view channel, std::string_view text);
    void check_keys(unsigned number, server::words words, std::span<const std::int64_t> before);
    void note_asked(unsigned client, server::words words);
    void check_key(unsigned number, const lock_write& what, std::span<const std::int64_t> before);
    std::int64_t expiry_of(master& where, std::string_view key, std::string_view token);
    std::vector<std::int64_t> expiries_of(unsigned number, server::words words);
    attempt* find_attempt(std::string_view token);
    nanos slow(nanos span) const noexcept;
    void retry(connection_id id);
    void scatter(connection& one, connection_id id, bool late, nanos late_max);
    std::string new_run_id(unsigned master);

    surroundings& here_;
    std::vector<master> masters_;
    std::vector<link> links_;
    std::vector<connection> connections_;
    std::vector<attempt> attempts_;
    std::map<std::string, nanos, std::less<>> asked_; // by client and lock key
    std::vector<std::string_view> words_;
    std::string replies_;
};

} // namespace simulation
