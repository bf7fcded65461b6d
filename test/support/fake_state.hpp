// The part of a fake master that a test and the serving thread share: rules, a master in memory and
// the record of what came in, under one mutex. It does no I/O; fake_master.hpp is what tests use.
#pragma once

#include "fake_action.hpp"
#include "memory/lua_machine.hpp"
#include "memory/server.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace redlock::test {

namespace memory = testing::memory;

struct fake_options {
    std::string requirepass;
    std::map<std::string, std::string> info; // fields of INFO, added or overriding
};

// Upper case, ASCII only: command names are compared so.
std::string upper(std::string text);

struct received_command {
    std::size_t sequence = 0;   // from 0, over all connections
    std::size_t connection = 0; // from 0, in order of acceptance
    std::vector<std::string> args;

    std::string name() const { return upper(args.front()); }
};

class fake_state {
public:
    using log = std::vector<received_command>;
    using command_predicate = std::function<bool(const received_command&)>;

    static constexpr std::size_t for_ever = static_cast<std::size_t>(-1);

    // What is to be done with a command. Decided when its turn comes, which is upon arrival unless
    // an earlier command of the connection hangs. What a test sees in the record has been executed,
    // if it ever is.
    struct turn {
        fake_action action;
        std::string reply;
        bool held = false; // not to be answered before release_hung()

        bool stops_others() const; // later ones have no turn before it has passed
    };

    struct pending {
        received_command command;
        std::optional<turn> decided;
    };

    struct record {
        log commands;
        std::vector<std::size_t> commands_per_read; // that it completed
        std::vector<std::string> protocol_errors;
        std::size_t connections_accepted = 0;
        std::size_t connections_open = 0;
    };

    struct session {
        bool authenticated = false;
    };

    explicit fake_state(const fake_options& options);

    // The serving side.
    std::size_t note_connected(); // the connection's number
    void note_closed();
    void note_protocol_error(const std::string& text);
    // Records a read. Decides too, unless something that came earlier stops the connection.
    std::vector<pending> note_read(
        session& who,
        std::size_t connection,
        std::vector<std::vector<std::string>> requests,
        bool stopped);

    // Releases what is held in a connection's queue and decides what comes after it.
    void release(session& who, std::deque<pending>& queue);

    // The test's side.
    void add_rule(command_predicate matches, fake_action action, std::size_t times);
    void clear_rules();
    void set_silent(bool silent);
    void clear_log();
    record look() const;

    // Gives the master in memory to a function under the lock.
    template <class Function>
    auto with_master(Function function) {
        const std::lock_guard guard(mutex_);
        return function(master_);
    }
    // Executes a command under the lock, and returns the reply as text.
    std::string command(const std::vector<std::string>& args);
    static std::int64_t wall_us();
    static std::string new_run_id();

    // False when the limit passes first. The predicate runs under the lock.
    bool wait_for(const std::function<bool(const record&)>& holds, std::chrono::seconds limit);

private:
    struct rule {
        command_predicate matches;
        fake_action action;
        std::size_t times_left;
    };

    memory::answer execute(const std::vector<std::string>& args);
    std::string reply_to(session& who, const std::vector<std::string>& args);
    fake_action choose(const received_command& command);
    turn decide(session& who, const received_command& command);

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    memory::lua_machine lua_;
    memory::server master_{lua_};
    std::vector<rule> rules_;
    record record_;
    std::size_t next_sequence_ = 0;
    bool silent_ = false;
};

// Matches a command by its first words, in any case; "*" matches all.
fake_state::command_predicate named(const std::string& words);

} // namespace redlock::test
