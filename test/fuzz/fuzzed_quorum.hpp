// An engine whose masters, network, callers and clock do what a fuzzer decides. Checked promises:
// each caller gets one result, no lease is longer than the masters' bytes prove, no lease comes
// back, every key is removed but not while its holder may act, and time advances.
//
// A holder acts until it lets go or until the last deadline that it ever saw has passed. A signal
// of the loss stops no holder.

#pragma once

#include "evidence.hpp"
#include "support/engine_host.hpp"
#include "unit/virtual_master.hpp"

namespace fuzz {

class fuzzed_quorum final : private redlock::test::engine_host {
public:
    static constexpr std::size_t masters = 3;

    struct rules {
        bool quarantine = false;
        bool password = false;
        bool young = false; // the servers were just started
    };
    explicit fuzzed_quorum(rules chosen);

    /// \name The network. What cannot happen at the moment does nothing.
    /// \{
    void connect(std::size_t master);
    void refuse(std::size_t master);
    void disconnect(std::size_t master);
    /// Hands what waits to the socket.
    void take_output(std::size_t master);
    /// The socket has written it, so that the master has it.
    void complete_write(std::size_t master);
    /// The master answers the first command that it has.
    void answer(std::size_t master);
    /// ... or does not execute it, and says something else.
    void answer_with(std::size_t master, std::string_view bytes);
    /// Unrequested bytes after the master's replies.
    void say(std::size_t master, std::string_view bytes);
    /// At most so much of what the master has said arrives.
    void deliver(std::size_t master, std::size_t bytes);
    /// Everything that a healthy network does in a moment.
    void settle();
    /// \}

    /// Another server from now on.
    void change(std::size_t master, std::size_t how);
    void restart(std::size_t master);

    /// \name Time
    /// \{
    void pass(std::chrono::nanoseconds span);  // timers run when they are due
    void stall(std::chrono::nanoseconds span); // nothing runs
    void wake();                               // timers run now, due or not
    /// \}

    /// \name Callers. Of operations and leases, one is chosen among those that there were.
    /// \{
    void start();
    void acquire(std::size_t resource, const redlock::acquire_options& options);
    void cancel(std::size_t which);
    void extend(std::size_t which, std::chrono::milliseconds ttl);
    void release(std::size_t which);
    void abandon(std::size_t which);
    void ask(std::size_t resource);
    void look();
    void close();
    /// \}

    /// Closes it, if that was not done, and looks whether everything came to its end.
    void finish();

private:
    struct path {
        std::size_t seen = 0; // of the output: read by `listen`
        std::string writing;  // taken by the socket
        std::string inbox;    // at the master
        std::string outbox;   // sent by the master, in flight
    };
    struct lease {
        enum class state : std::uint8_t { held, lost, ending, over } is = state::held;
        redlock::core::handle<redlock::core::claim> name;
        std::string key;
        std::string token;
        time_point held_until;
        time_point deadline;        // the last that its holder ever believed in
        bool late = false;          // its loss was signalled
        std::size_t extensions = 0; // asked for and not answered

        bool acts(time_point now) const noexcept {
            return (is == state::held || is == state::lost) && now < deadline;
        }
    };

    void open(std::size_t master) override;
    void close(std::size_t master) override;
    time_point now() const noexcept override { return now_; }
    bool logs(redlock::log_level) const override { return true; }
    void log(redlock::log_level, std::string_view line) override { logged_ += line.size(); }
    void
    acquired(const redlock::core::acquire_call& done, const redlock::core::claim& claim) override;
    void not_acquired(const redlock::core::acquire_call& done) override;
    void lease_changed(const redlock::core::claim& claim) override;
    void lease_lost(const redlock::core::claim& claim, redlock::loss_reason reason) override;
    void extended(const redlock::core::claim& claim, std::optional<redlock::errc> error) override;
    void removed(const redlock::core::claim& claim, redlock::release_result result) override;
    void queried(std::uint64_t, redlock::lock_status&& found) override;
    void closed() override;

    lease& lease_of(const redlock::core::claim& claim);
    void require_proof(const redlock::core::claim& claim);
    void listen();
    void end_of_event();
    void require_rollbacks();
    void require_keys();
    void arrive(std::size_t master, std::string_view bytes);
    void tick();

    std::vector<unit::virtual_master> servers_;
    std::vector<path> paths_;
    std::vector<std::unique_ptr<evidence>> proof_;
    std::map<std::uint64_t, redlock::core::handle<redlock::core::acquire_call>> waiting_;
    std::vector<redlock::core::handle<redlock::core::acquire_call>> asked_;
    std::vector<lease> leases_;
    std::set<std::string> abandoned_;
    std::uint64_t next_cookie_ = 1;
    std::size_t queries_ = 0;
    std::size_t logged_ = 0;
    std::size_t closings_ = 0;
    std::size_t starts_ = 0;
    bool new_output_ = false;
    bool honest_ = true; // no master has said anything that a master would not say
    time_point now_ = time_point(std::chrono::seconds(1'000'000));
};

} // namespace fuzz
