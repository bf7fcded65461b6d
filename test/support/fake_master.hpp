// A scripted Redis master inside the test, on loopback: it behaves like a healthy one that has been
// up for long until a rule makes it misbehave. It records what it was sent: in which order, on
// which connection and in which read.
//
//     fake_master master;
//     master.when("SET", fake_action::execute_then_close(), 1);
//     ... a client at master.url() acquires ...
//     master.wait_for_command("DEL");
//
// It serves on a thread of its own. Its functions may be called from any thread.
#pragma once

#include "memory/lua_machine.hpp"
#include "memory/server.hpp"
#include "process.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace redlock::test {

namespace memory = testing::memory;

// What a master does with a command. A connection replies in order, so whatever holds one reply
// back holds back the later replies; those commands are executed all the same, except after one
// that hangs unexecuted or that closes. Other connections go on.
struct fake_action {
    bool executes = true;
    std::string raw = {};                 // the reply, if it does not execute
    bool hangs = false;                   // until release_hung(), which executes it as well
    bool closes = false;                  // after the reply
    std::size_t sent = std::string::npos; // bytes of the reply at most

    static fake_action obey() { return {}; }
    static fake_action reply(std::string raw) { return {false, std::move(raw)}; }
    static fake_action hang() { return {false, {}, true}; }
    static fake_action execute_then_hang() { return {true, {}, true}; }
    static fake_action close_before_reply() { return {false, {}, false, true}; }
    static fake_action execute_then_close() { return close_mid_reply(0); }
    static fake_action close_mid_reply(std::size_t bytes) { return {true, {}, false, true, bytes}; }

    bool stops_others() const noexcept { return closes || (hangs && !executes); }
};

struct received_command {
    std::size_t connection; // from 0, in order of acceptance
    std::vector<std::string> args;

    // Whether it begins with these words, "CLIENT SETNAME", in upper case; "*" is every command.
    bool is(const std::string& words) const;
};

class fake_master {
public:
    using log = std::vector<received_command>;

    static constexpr std::size_t for_ever = static_cast<std::size_t>(-1);

    fake_master();
    ~fake_master();
    std::uint16_t port() const noexcept { return port_.number(); }
    std::string url() const; // redis://127.0.0.1:port
    void require(const std::string& password);

    // The first rule in order of addition that matches and is not used up decides, when the command
    // arrives or, after one that hangs, when that is released.
    void when(const std::string& words, fake_action action, std::size_t times = for_ever);
    void clear_rules();

    // Lets every command that hangs now go on: it has been executed (late!) when this returns, and
    // is answered. Rules are not asked again about it, but about those that wait after it.
    void release_hung();

    void refuse_connections(bool refuse); // refused: nobody listens; those that exist stay
    void drop_connections();              // closes those that exist
    std::size_t connections_accepted() const;
    std::size_t connections_open();

    void set_key(const std::string& key, const std::string& value);
    std::map<std::string, std::string> keys() const;
    void flush_keys();

    // The record.
    log commands() const;
    log commands(const std::string& words) const;
    std::size_t count(const std::string& words) const { return commands(words).size(); }
    std::vector<std::size_t> commands_per_read() const; // that each read completed
    void clear_log();

    // Blocks until this number of them is in the record; throws after 10 s. What is in the record
    // has been executed, unless it hangs, waits for one that does, or is not to be executed at all.
    void wait_for_command(const std::string& words, std::size_t times = 1);

private:
    struct connection;
    using connection_ptr = std::shared_ptr<connection>;
    struct rule {
        std::string words;
        fake_action action;
        std::size_t times_left;
    };

    // On the serving thread, with the mutex locked.
    void listen();
    void accept();
    void read(const connection_ptr& one);
    void take(connection& one, std::string_view bytes);
    void decide(connection& one);
    void answer(const connection_ptr& one);
    fake_action choose(const received_command& command);
    std::string reply_to(connection& who, const std::vector<std::string>& args);

    // Returns when the serving thread has done it.
    void serve(const std::function<void()>& task);
    memory::answer execute(const std::vector<std::string>& args);

    free_port port_;
    boost::asio::io_context io_;
    boost::asio::ip::tcp::acceptor acceptor_{io_};
    std::vector<connection_ptr> connections_; // used by the serving thread alone

    mutable std::mutex mutex_; // of all that follows
    std::condition_variable changed_;
    memory::lua_machine lua_;
    memory::server master_{lua_};
    std::vector<rule> rules_;
    log commands_;
    std::vector<std::size_t> reads_;
    std::size_t accepted_ = 0;

    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
    std::thread thread_;
};

} // namespace redlock::test
