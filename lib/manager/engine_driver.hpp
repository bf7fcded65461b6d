// Gives the engine time and sockets, one thread at a time. Input: what happens to the connections,
// as events. Output: the bytes that the engine wants to send, once for all events of one turn of
// the loop. It makes no decisions, and of callers it only knows how their handlers are cancelled.

#pragma once

#include "completion.hpp"
#include "config/settings_of.hpp"
#include "core/engine/engine.hpp"
#include "net/backend.hpp"
#include "net/socket_callbacks.hpp"
#include "time_source.hpp"

#include <redlock/config.hpp>

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// The error of a cancelled operation.
inline const error_code aborted = boost::asio::error::operation_aborted;

/// The base of the manager, which is the engine's host for everything but sockets and logs.
class engine_driver : public net::socket_callbacks, protected core::engine_callbacks {
public:
    template <typename... Results>
    using handler = boost::asio::any_completion_handler<void(error_code, Results...)>;
    /// Called once, with the manager as the owner.
    using backend_maker = std::function<std::unique_ptr<net::backend>(net::socket_callbacks&)>;

    /// \name From any thread
    /// \{
    const home& io() const noexcept { return io_; }
    const config& configuration() const noexcept { return config_; }
    const time_source& time() const noexcept { return time_; }
    time_point now() const noexcept { return time_.now(); }
    /// \}

    /// \name With the guard held
    /// \{
    /// Connects a handler's cancellation slot to `f(id, type)`, called with the guard held for the
    /// types that are accepted. Returns the id; 0 without a slot.
    template <typename Handler, typename F>
    std::uint64_t on_cancel(Handler& done, boost::asio::cancellation_type accepted, F f) {
        auto slot = boost::asio::get_associated_cancellation_slot(done);
        if (!slot.is_connected()) {
            return 0;
        }
        const std::uint64_t id = next_id_++;
        slot.assign(
            [weak = weak_from_this(), id, accepted, f](boost::asio::cancellation_type type) {
                if ((type & accepted) == boost::asio::cancellation_type::none) {
                    return;
                }
                if (const auto owner = weak.lock()) {
                    const section lock(*owner);
                    f(id, type);
                }
            });
        return id;
    }
    /// Adds a handler to `those`, which `owner` has. A cancellation completes it with `results`,
    /// after the error.
    template <typename... Results>
    void add_to(
        waiters<error_code, Results...>& those,
        std::weak_ptr<const void> owner,
        boost::asio::cancellation_type accepted,
        diagnostics* out,
        completion<error_code, Results...>&& done,
        std::type_identity_t<Results>... results) {
        const auto id = on_cancel(
            done,
            accepted,
            [this, &those, owner = std::move(owner), results...](std::uint64_t id, auto) {
                if (const auto alive = owner.lock()) {
                    those.complete(io_, id, aborted, results...);
                }
            });
        those.add({id, out, std::move(done)});
    }
    core::engine& engine() noexcept { return engine_; }
    const core::engine& engine() const noexcept { return engine_; }
    /// Passes an event to the engine: `f(now)`.
    template <typename F>
    void dispatch(F f) {
        const time_point now = time_.now();
        f(now);
        catch_up(now);
        schedule_flush();
    }
    /// Does what the engine wants after an event: at once, or once for all events of this turn of
    /// the loop if there are bytes to send.
    void schedule_flush();
    /// The handler of a caller was posted, and probably starts its next operation: the turn ends
    /// after it, which saves a turn.
    void handler_posted() noexcept { handler_posted_ = true; }
    /// Describes an outcome and its votes as text.
    void explain(
        diagnostics& out,
        std::string_view resource,
        const error_code& error,
        unsigned attempts,
        clock::duration elapsed,
        const core::ballots& votes) const;
    /// The largest ttl of a lock: the quorum's, or while that is not known, the configuration's.
    std::chrono::milliseconds longest_ttl() const {
        const std::chrono::milliseconds known = engine_.ttl_limit();
        return known.count() != 0 ? known : max_ttl_of(config_);
    }
    /// Reports to the caller and to the log why an argument was refused, and looks whether `ttl`
    /// would be allowed by now.
    void refuse(
        diagnostics* out,
        std::string_view resource,
        const std::string& reason,
        std::chrono::milliseconds ttl = {});
    bool logs(log_level level) const override;
    void log(log_level level, std::string_view line) override;
    /// \}

    /// Creates the transport: sockets, unless `make` returns another one.
    engine_driver(
        const boost::asio::any_io_executor& io,
        config configuration,
        time_source time = {},
        const backend_maker& make = {});

protected:
    ~engine_driver();

    /// The turn is over, and its bytes have been passed to the sockets. Returns when the manager
    /// itself needs `time_came`.
    virtual time_point turn_ended() = 0;
    // core::engine_callbacks
    void open(std::size_t link) override { backend_->open(link); }
    void close(std::size_t link) override {
        engine_.closed_down() ? backend_->finish(link) : backend_->close(link);
    }
    void random(std::span<unsigned char> out) override { backend_->random(out); }

    /// No more turns: the engine has closed.
    void sleep() noexcept { backend_->sleep(); }

private:
    // net::socket_callbacks
    void socket_opened(std::size_t link) override;
    void socket_closed(std::size_t link, std::string_view why) override;
    void socket_received(std::size_t link, std::span<const char> bytes) override;
    void all_received() override;
    void socket_written(std::size_t link, std::size_t bytes) override;

    /// Does what an event of `now` has made due, such as the attempt of a waiter that was notified:
    /// a timer would cost it two more turns.
    void catch_up(time_point now) {
        if (engine_.next_due() <= now) {
            engine_.time_passed(now);
        }
    }
    /// Writes what was queued, reads what has arrived, and lets the reactor wait.
    void end_turn();
    /// The manager's own work of a turn, and the timer for what is due next.
    void turn_passed();
    void write_all();

    home io_;
    config config_;
    const time_source time_;
    std::uint64_t next_id_ = 1;
    std::unique_ptr<net::backend> backend_;
    core::engine engine_;
    time_point received_at_ = core::never; // the last bytes
    bool turn_posted_ = false;
    bool handler_posted_ = false; // in this turn
};

}}} // namespace redlock::REDLOCK_ABI::detail
