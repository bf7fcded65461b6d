// The manager behind the handle: gives the engine time and sockets, one thread at a time, and
// brings its answers to the callers' handlers. It decides nothing.

#pragma once

#include "completion.hpp"
#include "core/engine.hpp"
#include "lease_handle.hpp"
#include "net/link_owner.hpp"
#include "net/outside.hpp"
#include "release_watch.hpp"
#include "time_source.hpp"

#include <redlock/lock_manager.hpp>

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// What a cancelled operation ends with.
inline const error_code aborted = boost::asio::error::operation_aborted;

/// How the engine's objects and ours name each other.
inline std::uint64_t cookie_of(core::handle name) noexcept {
    return std::uint64_t{name.index} << 32U | name.generation;
}
inline core::handle handle_of(std::uint64_t cookie) noexcept {
    return {static_cast<std::uint32_t>(cookie >> 32U), static_cast<std::uint32_t>(cookie)};
}

class manager_impl final : public net::link_owner, private core::host {
public:
    template <typename... Arguments>
    using handler = boost::asio::any_completion_handler<void(Arguments...)>;

    manager_impl(const boost::asio::any_io_executor& io, config configuration);
    /// In a world of its own: `make` is called once, with the manager as the owner.
    using outside_maker = std::function<std::unique_ptr<net::outside>(net::link_owner&)>;
    manager_impl(
        const boost::asio::any_io_executor& io,
        config configuration,
        time_source time,
        const outside_maker& make);
    ~manager_impl();

    const boost::asio::any_io_executor& io() const noexcept { return io_.executor; }

    /// \name From any thread
    /// \{
    void run(handler<error_code> done);
    void ready(handler<error_code> done);
    void close(handler<error_code> done);
    void acquire(
        std::string resource,
        acquire_options options,
        diagnostics* out,
        handler<error_code, lock> done);
    void acquire_as(
        std::string resource,
        const std::string& lock_token,
        acquire_options options,
        diagnostics* out,
        handler<error_code, lock> done);
    void attach(
        std::string resource,
        const std::string& lock_token,
        acquire_options options,
        diagnostics* out,
        handler<error_code, lock> done);
    /// `resources` in any order, and twice is once.
    void acquire_form(
        core::lock_form form,
        std::vector<std::string> resources,
        acquire_options options,
        diagnostics* out,
        handler<error_code, lock> done);
    /// So many slots of a pool, which has `size`, as one lock.
    void acquire_slots(
        std::string pool,
        std::uint32_t size,
        std::size_t wants,
        acquire_options options,
        diagnostics* out,
        handler<error_code, lock> done);
    void slots_status(std::string pool, std::uint32_t slots, handler<error_code, pool_status> done);
    void query(std::string resource, handler<error_code, lock_status> done);
    /// Without a ttl: makes a reader of a writer.
    void extend(
        std::shared_ptr<lease_handle> lease,
        std::optional<std::chrono::milliseconds> ttl,
        diagnostics* out,
        handler<error_code> done);
    void release(
        std::shared_ptr<lease_handle> lease,
        diagnostics* out,
        handler<error_code, release_result> done);
    void wait_lost(
        std::shared_ptr<lease_handle> lease,
        diagnostics* out,
        handler<error_code, loss_reason> done);
    void drop(std::shared_ptr<lease_handle> lease, bool release);
    void shut_down();
    /// Listens to the releases of a resource, until as many calls of `unlisten`.
    void listen(const std::string& resource);
    void unlisten(const std::string& resource);
    /// How often something was heard of it. Only while it is listened to.
    std::uint64_t hints_of(const std::string& resource) const;
    /// Waits for a moment, or until more was heard than `before`. Ends with `errc::closed` when
    /// the manager is closed.
    void wait_hint(
        const std::string& resource,
        std::uint64_t before,
        time_point moment,
        handler<error_code> done);
    time_point now() const noexcept { return time_.now(); }
    const config& configuration() const noexcept { return config_; }
    metrics get_metrics() const;
    health get_health() const;
    /// \}

private:
    struct acquire_op {
        core::handle self;
        core::handle wanted; // in the engine
        std::uint64_t observed = 0;
        std::string resource;
        diagnostics* out = nullptr;
        std::optional<completion<error_code, lock>> done;

        void reset() {
            wanted = {};
            done.reset();
        }
    };
    struct query_op {
        core::handle self;
        std::uint64_t id = 0;
        std::uint64_t observed = 0;
        std::string resource;
        std::optional<completion<error_code, lock_status>> done;

        void reset() { done.reset(); }
    };

    struct status_op {
        core::handle self;
        std::uint64_t id = 0;
        std::optional<completion<error_code, pool_status>> done;

        void reset() { done.reset(); }
    };

    // net::link_owner
    void link_opened(std::size_t master) override;
    void link_closed(std::size_t master, std::string_view why) override;
    void link_received(std::size_t master, std::span<const char> bytes) override;
    void link_written(std::size_t master, std::size_t bytes) override;
    void time_came() override;

    // core::host
    void open(std::size_t master) override;
    void close(std::size_t master) override;
    void random(std::span<unsigned char> out) override;
    bool logs(log_level level) const override;
    void log(log_level level, std::string_view line) override;
    void acquired(const core::operation& done, const core::claim& lease) override;
    void not_acquired(const core::operation& done) override;
    void lease_changed(const core::claim& lease) override;
    void lease_lost(const core::claim& lease, loss_reason reason) override;
    void held_long(const core::claim& lease) override;
    void contention(std::string_view key, std::size_t waiting) override;
    void renewing(const core::claim& lease) override;
    void renewed(const core::claim& lease, std::optional<errc> error) override;
    void extended(const core::claim& lease, std::optional<errc> error) override;
    void removed(const core::claim& lease, release_result result) override;
    void queried(core::query& done) override;
    void slots_told(std::uint64_t cookie, pool_status&& found) override;
    void heard(std::string_view key) override;
    void closed() override;

    static std::string
    name_of_slots(const std::string& pool, const std::vector<std::uint32_t>& numbers);
    std::shared_ptr<manager_impl> self() {
        return std::static_pointer_cast<manager_impl>(shared_from_this());
    }
    /// Gives the engine an event: `f(now)`. With the guard held.
    template <typename F>
    void drive(F f);
    /// Sees to what the engine wants after an event: at once, or, where there is something to
    /// write, once for all the events of this turn of the loop.
    void after();
    void end_turn();
    void write_all();
    /// An acquire whose arguments were checked, with the guard held. `resource`: for people, and
    /// the name of a lock of one resource.
    void begin_acquire(
        std::string resource,
        core::acquire_request request,
        diagnostics* out,
        handler<error_code, lock> done);
    std::string key_of(std::string_view resource) const;
    /// Begins the end of all that is under way.
    void begin_close();
    /// Tells why an argument was refused.
    void refuse(diagnostics* out, const std::string& reason);
    /// ... and ends the acquire.
    void refuse(diagnostics* out, const std::string& reason, handler<error_code, lock> done);
    /// Ends a held lease, with its release or without.
    void let_go(lease_handle& lease, bool release);
    /// Connects a handler's cancellation slot to `f(*this, id)`, called with the guard held. Gives
    /// the id; 0 without a slot.
    template <typename Handler, typename F>
    std::uint64_t on_cancel(Handler& handler, F f);
    void explain(
        diagnostics& out,
        const error_code& error,
        unsigned attempts,
        clock::duration elapsed,
        const core::ballots& votes) const;

    // manager_observed.cpp
    /// `f(observer)`, if there is one. What it throws ends here.
    template <typename F>
    void observe(F f);
    /// Tells the observer of a start. Gives the operation's number; 0 without an observer.
    std::uint64_t observe_start(operation_start what);
    void observe_end(const operation_end& what, const diagnostics& votes);
    void observe_end(const operation_end& what, const lock_status& status);
    /// Explains an end to the caller, if it asked for that, and to the observer.
    void tell(
        diagnostics* out,
        const operation_end& what,
        unsigned attempts,
        clock::duration elapsed,
        const core::ballots& votes);
    /// Tells of the end of an extension by the library, if one is under way.
    void end_renewal(lease_handle& lease, const error_code& error, const diagnostics& votes);
    void observe_acquired(const lease_handle& lease);
    void observe_lost(lease_handle& lease);
    void observe_abandoned(const lease_handle& lease);
    void observe_removed(const lease_handle& lease, const diagnostics& votes);

    home io_;
    config config_;
    const time_source time_;
    std::atomic<std::uint64_t> next_id_{1};

    std::unique_ptr<net::outside> outside_;
    core::engine engine_;
    bool turn_posted_ = false;

    core::pool<acquire_op> acquires_;
    core::pool<query_op> queries_;
    core::pool<status_op> statuses_;
    std::vector<std::shared_ptr<lease_handle>> leases_; // by the claim's place
    std::optional<completion<error_code>> run_;
    bool run_cancelled_ = false;
    waiters<error_code> ready_;
    release_watch watch_{io_};
    waiters<error_code> closing_;
    std::uint64_t observed_ = 0; // operations that the observer was told of
    std::uint64_t observer_errors_ = 0;
};

template <typename F>
void manager_impl::drive(F f) {
    f(time_.now());
    after();
}

template <typename Handler, typename F>
std::uint64_t manager_impl::on_cancel(Handler& handler, F f) {
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    if (!slot.is_connected()) {
        return 0;
    }
    const std::uint64_t id = next_id_++;
    slot.assign([weak = weak_from_this(), id, f](boost::asio::cancellation_type) {
        if (const auto owner = weak.lock()) {
            auto& me = static_cast<manager_impl&>(*owner);
            const std::lock_guard lock(me.guard);
            f(me, id);
        }
    });
    return id;
}

}}} // namespace redlock::REDLOCK_ABI::detail
