#include "procedure.hpp"

#include <redlock/reentrant_mutex.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <stdexcept>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

namespace asio = boost::asio;

namespace detail {

/// The state that all entries of one owner share. The last entry releases it, and the lock with it.
struct reentrant_lease {
    explicit reentrant_lease(lock taken) : taken(std::move(taken)) {}

    /// Enters once more, unless the last entry has been left. Returns the depth; 0 if it has.
    std::uint32_t enter(std::uint32_t depth_max) noexcept {
        std::uint32_t now = entries.load();
        while (now > 0 && now < depth_max) {
            if (entries.compare_exchange_weak(now, now + 1)) {
                return now + 1;
            }
        }
        return 0;
    }

    lock taken;
    std::atomic<std::uint32_t> entries{1};
};

// Owners and waiters are on one strand. Held entries are not: they may be left from any thread.
class reentrant_impl : public std::enable_shared_from_this<reentrant_impl> {
public:
    using done_handler = asio::any_completion_handler<void(error_code, reentrant_hold)>;

    reentrant_impl(
        const lock_manager& manager,
        std::string resource,
        acquire_options options,
        std::uint32_t depth_max)
        : manager_(manager),
          io_(manager_.get_executor()),
          strand_(asio::make_strand(io_)),
          resource_(std::move(resource)),
          options_(options),
          depth_max_(depth_max) {}

    const asio::any_io_executor& io() const noexcept { return io_; }

    void acquire(std::uint64_t owner, diagnostics_sink sink, done_handler done) {
        const std::uint64_t id = next_id_++;
        entry waiting{id, sink, {std::move(done), io_}};
        waiting.done.on_cancel(
            weak_from_this(), [owner, id](const std::shared_ptr<reentrant_impl>& me) {
                asio::post(me->strand_, [me, owner, id] { me->cancel(owner, id); });
            });
        asio::post(
            strand_, [self = shared_from_this(), owner, waiting = std::move(waiting)]() mutable {
                self->begin(owner, std::move(waiting));
            });
    }

private:
    struct entry {
        std::uint64_t id;
        diagnostics_sink sink;
        caller<error_code, reentrant_hold> done;
    };

    struct seat {
        std::weak_ptr<reentrant_lease> lease; // of the current owner
        std::list<entry> waiting;             // the first one acquires for all of them
        asio::cancellation_signal cancel;
        diagnostics why;
    };

    void begin(std::uint64_t owner, entry waiting) {
        std::erase_if(seats_, [](const auto& one) {
            return one.second.waiting.empty() && one.second.lease.expired();
        });
        seat& mine = seats_[owner];
        if (mine.waiting.empty()) {
            const auto lease = mine.lease.lock();
            if (lease && lease->entries > 0) {
                auto [error, entered] = enter(lease);
                if (entered.valid() || lease->entries > 0) {
                    std::move(waiting.done)(io_, error, std::move(entered));
                    return;
                }
            }
        }
        mine.waiting.push_back(std::move(waiting));
        if (mine.waiting.size() == 1) {
            ask(owner, mine);
        }
    }

    std::pair<error_code, reentrant_hold> enter(const std::shared_ptr<reentrant_lease>& lease) {
        if (!lease->taken.held()) {
            return {errc::lost, reentrant_hold()};
        }
        const std::uint32_t depth = lease->enter(depth_max_);
        if (depth == 0) {
            return {errc::recursion_limit, reentrant_hold()};
        }
        return {error_code(), reentrant_hold(lease, depth)};
    }

    // The acquire serves all entries of the owner, so it uses the allocator of none of them. Each
    // may be cancelled, and its memory may go, before the acquire ends.
    void ask(std::uint64_t owner, seat& mine) {
        auto asked = [self = shared_from_this(), owner](error_code error, lock taken) {
            self->asked(owner, error, std::move(taken));
        };
        manager_.async_acquire(
            resource_,
            options_,
            with_diagnostics(
                mine.why,
                asio::bind_cancellation_slot(
                    mine.cancel.slot(), asio::bind_executor(strand_, std::move(asked)))));
    }

    void asked(std::uint64_t owner, error_code error, lock taken) {
        seat& mine = seats_[owner];
        std::list<entry> waiting = std::move(mine.waiting);
        mine.waiting.clear();
        const diagnostics why = std::move(mine.why);
        // All entries exist before the first handler runs, which may leave its entry.
        std::vector<std::pair<error_code, reentrant_hold>> results;
        if (!error) {
            const auto lease = std::make_shared<reentrant_lease>(std::move(taken));
            mine.lease = lease;
            results.emplace_back(error, reentrant_hold(lease, 1));
            while (results.size() < waiting.size()) {
                results.push_back(enter(lease));
            }
        } else { // only the first one can have been cancelled
            results.resize(error == asio::error::operation_aborted ? 1 : waiting.size());
        }
        for (auto& [result, hold] : results) {
            entry& one = waiting.front();
            result = error ? error : result;
            if (diagnostics* const out = one.sink.on(result)) {
                *out = why;
            }
            std::move(one.done)(io_, result, std::move(hold));
            waiting.pop_front();
        }
        if (!waiting.empty()) {
            mine.waiting = std::move(waiting);
            ask(owner, mine);
        }
    }

    void cancel(std::uint64_t owner, std::uint64_t id) {
        const auto found = seats_.find(owner);
        if (found == seats_.end()) {
            return;
        }
        std::list<entry>& waiting = found->second.waiting;
        const auto at = std::ranges::find(waiting, id, &entry::id);
        if (at == waiting.end()) {
            return;
        }
        if (at == waiting.begin()) {
            found->second.cancel.emit(asio::cancellation_type::terminal);
            return;
        }
        std::move(at->done)(io_, asio::error::operation_aborted, reentrant_hold());
        waiting.erase(at);
    }

    shared_manager manager_;
    const asio::any_io_executor io_;
    const asio::strand<asio::any_io_executor> strand_;
    const std::string resource_;
    const acquire_options options_;
    const std::uint32_t depth_max_;
    std::atomic<std::uint64_t> next_id_{1};
    std::map<std::uint64_t, seat> seats_;
};

} // namespace detail

// --- The owner and its entries ------------------------------------------------------------------

namespace {

std::uint64_t next_owner() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

} // namespace

reentrant_owner::reentrant_owner() noexcept : id_(next_owner()) {}

reentrant_hold::reentrant_hold(lease_ptr lease, std::uint32_t depth) noexcept
    : lease_(std::move(lease)),
      depth_(depth) {}

reentrant_hold& reentrant_hold::operator=(reentrant_hold&& other) noexcept {
    if (this != &other) {
        leave();
        lease_ = std::move(other.lease_);
        depth_ = other.depth_;
    }
    return *this;
}

reentrant_hold::~reentrant_hold() {
    leave();
}

void reentrant_hold::leave() noexcept {
    if (lease_) {
        --lease_->entries;
        lease_.reset(); // the last one releases the lock
    }
}

bool reentrant_hold::held() const noexcept {
    return lease_ && lease_->taken.held();
}

std::uint32_t reentrant_hold::depth() const {
    shared();
    return depth_;
}

lock& reentrant_hold::shared() const {
    if (!lease_) {
        throw std::logic_error("redlock::reentrant_hold: the hold is empty: check valid() first");
    }
    return lease_->taken;
}

void reentrant_hold::start_release(
    lease_ptr lease,
    asio::any_completion_handler<void(error_code, std::optional<release_result>)> done) {
    if (--lease->entries > 0) {
        const asio::any_io_executor io = lease->taken.get_executor();
        lease.reset();
        detail::caller<error_code, std::optional<release_result>>(std::move(done), io)(
            io, {}, std::nullopt);
        return;
    }
    lease->taken.async_release(detail::adapt(
        std::move(done), [lease](auto caller, error_code error, release_result result) {
            std::move(caller)(error, error ? std::nullopt : std::optional(result));
        }));
}

// --- The mutex ----------------------------------------------------------------------------------

reentrant_mutex::reentrant_mutex(
    lock_manager& manager, std::string resource, acquire_options options, std::uint32_t depth_max) {
    if (depth_max == 0) {
        throw std::invalid_argument("redlock: depth_max is 0; allowed: 1 or more");
    }
    detail::shared_manager(manager).require(resource, options, "reentrant_mutex");
    impl_ =
        std::make_shared<detail::reentrant_impl>(manager, std::move(resource), options, depth_max);
}

reentrant_mutex::executor_type reentrant_mutex::get_executor() const {
    return impl_->io();
}

void reentrant_mutex::start_acquire(
    impl_ptr impl,
    std::uint64_t owner,
    detail::diagnostics_sink sink,
    asio::any_completion_handler<void(error_code, reentrant_hold)> done) {
    impl->acquire(owner, sink, std::move(done));
}

}} // namespace redlock::REDLOCK_ABI
