// A master in memory: reads the commands that the engine wrote, keeps keys which expire on a
// virtual clock, and writes replies. What a test wants to go wrong is a member of it.

#pragma once

#include "core/scripts.hpp"
#include "core/validity.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace unit {

using redlock::time_point;

using arguments = std::vector<std::string>;

/// What comes instead of the ordinary course of one command.
enum class mishap {
    none,
    break_before, // the connection breaks before the command is executed
    break_after,  // ... after it was executed, before the answer
    hang_before,  // nothing is read any more, this command included, until `resume`
    hang_after,   // it is executed, but no answer leaves, nor to what follows, until `resume`
};

struct virtual_master {
    struct entry {
        std::string value;
        time_point expires = redlock::core::forever;
    };

    // What INFO says.
    std::string run_id;
    std::string version = "7.0.15";
    std::string valkey_version;
    std::string role = "master";
    std::string eviction_policy = "noeviction";
    std::string maxmemory = "0";
    std::string promoted_from;
    bool loading = false;
    time_point started = time_point(std::chrono::seconds(0));

    // How it answers.
    std::string password;            // AUTH with another one is an error
    std::set<std::string> unknown;   // commands that it does not know
    std::set<std::string> forbidden; // commands that the user may not say
    /// A reply in place of the ordinary one, without execution. First word in upper case.
    std::map<std::string, std::string> replies;
    /// Consulted before each command; the test says what goes wrong with it.
    std::function<mishap(const arguments&)> when;

    std::map<std::string, entry> keys;
    /// The queue for a lock: who waits, by arrival, and until when it keeps its place.
    std::map<std::string, std::vector<std::pair<std::string, time_point>>> queues;
    std::set<std::string> scripts;
    /// Every command that was executed, its words separated by spaces, scripts by their names.
    std::vector<std::string> seen;

    /// The reply to one command.
    std::string execute(const arguments& words, time_point now);

    /// The value of a key that has not expired.
    std::optional<std::string> value_of(const std::string& key, time_point now);
    /// How many of the executed commands begin with `start`.
    std::size_t count(std::string_view start) const;
    void forget() {
        keys.clear();
        queues.clear();
        scripts.clear();
    }

    /// Takes one complete command from the front of `bytes`, if there is one.
    static std::optional<arguments> take_command(std::string& bytes);

private:
    entry* find(const std::string& key, time_point now);
    std::string info(time_point now) const;
    std::string set(const arguments& words, time_point now);
    std::string evaluate(const arguments& words, time_point now);
    std::string take_turn(const arguments& words, time_point now);
    std::string leave_queue(const arguments& words);
    std::string
    remove_if(const std::string& key, const std::string& token, bool script, time_point now);
};

} // namespace unit
