// What a fake master answers when it behaves: the commands of a client's handshake and of plain
// locking, over a small key store. It cannot run Lua; scripts go to a hook, and the two that plain
// locking needs are recognised by their number of arguments. Not thread-safe, no I/O.
#pragma once

#include "key_store.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace redlock::test {

// Given all words of an EVAL or EVALSHA, returns the raw reply (see resp_wire.hpp), or nullopt for
// the default. Runs on the fake master's thread with its state locked: it may use the store it is
// given, but not call the fake master.
using eval_hook =
    std::function<std::optional<std::string>(key_store&, const std::vector<std::string>&)>;

struct fake_options {
    std::string version = "7.0.15";
    std::string requirepass;                   // empty: any AUTH is accepted, none is needed
    std::map<std::string, std::string> info;   // fields of INFO, added or overriding
    std::map<std::string, std::string> config; // what CONFIG GET knows
    bool delex = false;                        // DELEX key IFEQ value, as Redis 8.4
    bool delifeq = false;                      // DELIFEQ key value, as Valkey 9
    bool set_ifeq = false;                     // SET key value IFEQ old, as both
    bool evalsha_always_unknown = false;       // NOSCRIPT whatever was seen
    eval_hook on_eval;
};

class fake_commands {
public:
    struct session {
        bool authenticated = false;
    };

    fake_commands(fake_options options, std::uint16_t port);

    // The raw reply. Never throws for what a client sent.
    std::string execute(session& who, const std::vector<std::string>& args);

    key_store& keys() noexcept { return keys_; }
    fake_options& options() noexcept { return options_; }
    std::map<std::string, std::string>& info() noexcept { return info_; }
    void forget_scripts() noexcept { scripts_.clear(); }
    void renew_run_id();

private:
    using words = std::vector<std::string>;
    using handler = std::string (fake_commands::*)(const words&);
    struct command {
        std::size_t words_min;
        handler run;
    };

    static const std::map<std::string, command>& table();
    bool enabled(const std::string& name) const;

    std::string auth(session& who, const words& args) const;
    std::string ok(const words& args);
    std::string ping(const words& args);
    std::string info_text(const words& args);
    std::string config(const words& args);
    std::string command_info(const words& args);
    std::string set(const words& args);
    std::string get(const words& args);
    std::string exists(const words& args);
    std::string pttl(const words& args);
    std::string pexpire(const words& args);
    std::string del(const words& args);
    std::string delex(const words& args);
    std::string delifeq(const words& args);
    std::string flushall(const words& args);
    std::string publish(const words& args);
    std::string script(const words& args);
    std::string eval(const words& args);
    std::string evalsha(const words& args);
    std::string run_script(const words& args);

    fake_options options_;
    std::map<std::string, std::string> info_;
    key_store keys_;
    std::set<std::string> scripts_; // by SHA-1, lower case
};

// Upper case, ASCII only: command names are compared so.
std::string upper(std::string text);

} // namespace redlock::test
