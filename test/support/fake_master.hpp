// A scripted Redis master inside the test, on loopback: it behaves like a healthy one that has been
// up for long until a rule makes it misbehave. It records what it was sent: in which order, on
// which connection and in which read.
//
//     fake_master master;
//     master.when("SET", fake_action::execute_then_close(), 1);
//     ... a client at master.url() acquires ...
//     master.wait_for_command("DEL");
//
// It runs on a thread of its own: every function may be called from any thread but from inside a
// predicate.
#pragma once

#include "fake_action.hpp"
#include "fake_state.hpp"

namespace redlock::test {

class fake_server;

class fake_master {
public:
    using log = fake_state::log;
    using log_predicate = std::function<bool(const log&)>;
    using command_predicate = fake_state::command_predicate;

    static constexpr std::size_t for_ever = fake_state::for_ever;
    static constexpr std::chrono::seconds default_limit{10};

    explicit fake_master(const fake_options& options = {});
    fake_master(fake_master&&) noexcept;
    fake_master& operator=(fake_master&&) = delete;
    ~fake_master();

    std::uint16_t port() const noexcept;
    std::string url() const; // redis://127.0.0.1:port

    // Rules. The first in order of addition that matches and is not used up decides, when the
    // command arrives or, after one that hangs, when that is released. A name may have several
    // words ("CLIENT SETNAME"), in any case; "*" is every command.
    void when(const std::string& command, fake_action action, std::size_t times = for_ever);
    void when(command_predicate matches, fake_action action, std::size_t times = for_ever);
    void clear_rules();

    // Lets every command that hangs now go on: it has been executed (late!) when this returns, and
    // is answered. Rules are not asked again about it, but about those that wait after it.
    void release_hung();

    // Connections.
    void refuse_connections(bool refuse);     // refused: nobody listens; those that exist stay
    void drop_connections();                  // closes those that exist
    void accept_but_say_nothing(bool silent); // every command hangs; false releases them
    std::size_t connections_accepted() const;

    // State.
    void set_key(const std::string& key, const std::string& value);
    std::optional<std::string> get_key(const std::string& key) const;
    std::map<std::string, std::string> keys() const;
    void flush_keys();

    // The record.
    log commands() const;
    log commands(const std::string& name) const;
    std::size_t count(const std::string& name) const;
    std::vector<std::size_t> commands_per_read() const;
    std::vector<std::string> protocol_errors() const;
    void clear_log(); // commands, reads and protocol errors; numbering goes on

    // Block until it is so; time_limit_error with the record so far when it is not in time. The
    // predicate runs with the state locked. What is in the record has been executed, unless it
    // hangs, waits for one that does, or is not to be executed at all.
    void wait_for(const log_predicate& holds, std::chrono::seconds limit = default_limit);
    void wait_for_command(
        const std::string& name, std::size_t times = 1, std::chrono::seconds limit = default_limit);
    void wait_for_open_connections(std::size_t open, std::chrono::seconds limit = default_limit);

private:
    class own_thread;

    void
    wait(const std::function<bool(const fake_state::record&)>& holds, std::chrono::seconds limit);

    std::unique_ptr<own_thread> thread_;
    std::shared_ptr<fake_state> state_;
    std::shared_ptr<fake_server> server_;
};

} // namespace redlock::test
