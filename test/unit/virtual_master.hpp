// A master in memory on the virtual clock of a test, which reads what the engine wrote and answers
// in bytes. What a test wants to go wrong is a member of it, or of the server that it is.

#pragma once

#include "core/base/validity.hpp"
#include "core/bytes/guarded_scripts.hpp"
#include "memory/server.hpp"

#include <chrono>
#include <optional>
#include <set>

namespace unit {

namespace memory = redlock::testing::memory;
using redlock::time_point;

using arguments = std::vector<std::string>;

/// What comes instead of the ordinary course of one command.
enum class mishap {
    none,
    break_before, // the connection breaks before the command is executed
    break_after,  // ... after it was executed, before the answer
    hang_before,  // nothing is read any more, this command included, until `resume`
};

struct virtual_master : memory::server {
    virtual_master();

    /// How far its clock is ahead of the test's.
    std::chrono::microseconds ahead{0};

    std::set<std::string> forbidden; // commands that the user may not say
    /// A reply in place of the ordinary one, without execution. First word in upper case.
    std::map<std::string, std::string> replies;
    /// Consulted before each command; the test says what goes wrong with it.
    std::function<mishap(const arguments&)> when;

    /// Every command that was executed, except for the trial of a script: its words separated by
    /// spaces, scripts by their names.
    std::vector<std::string> seen;

    /// The reply to one command.
    std::string execute(const arguments& words, time_point now);
    /// The same for somebody else: it is not in `seen`, nothing goes wrong, and the reply is text.
    std::string run(const arguments& words, time_point now);

    void
    put(const std::string& key,
        const std::string& value,
        time_point expires = redlock::core::forever);
    void drop(const std::string& key);
    /// The value of a key that has not expired.
    std::optional<std::string> value_of(std::string_view key, time_point now);
    time_point expires(std::string_view key) const;
    void know(const redlock::core::script& one);
    void forget_scripts() { run({"SCRIPT", "FLUSH"}, {}); }
    void forget() {
        data.clear();
        forget_scripts();
    }
    /// How many of the executed commands begin with `start`.
    std::size_t count(std::string_view start) const;
    std::int64_t wall_us(time_point now) const;

    /// Takes one complete command from the front of `bytes`, if there is one.
    static std::optional<arguments> take_command(std::string& bytes);
    /// The commands in `bytes`, each with its words separated by spaces.
    static std::vector<std::string> lines_of(std::string bytes);

private:
    memory::answer reply_to(const arguments& words, time_point now);
};

/// Whether this command is that script.
inline bool runs(const arguments& words, const redlock::core::script& one) {
    return words.size() > 1 && (words[1] == one.text || words[1] == one.sha1);
}

} // namespace unit
