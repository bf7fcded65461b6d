#include "lease_handle.hpp"
#include "manager_access.hpp"
#include "manager_impl.hpp"

#include <redlock/multi_lock.hpp>
#include <redlock/slot_pool.hpp>

#include <boost/asio/associator.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

struct slot_maker {
    static void make(lock&& held, slot& out) {
        const std::size_t number = lease_handle::slots_of(held).front();
        out = slot(std::move(held), number);
    }
    static void make(lock&& held, slots& out) {
        const std::vector<std::uint32_t>& numbers = lease_handle::slots_of(held);
        std::vector<std::size_t> mine(numbers.begin(), numbers.end());
        out = slots(std::move(held), std::move(mine));
    }
};

// The caller's handler as one for a lock.
template <typename Handle>
struct give_slots {
    using handler = boost::asio::any_completion_handler<void(error_code, Handle)>;
    handler done;

    void operator()(error_code error, lock held) {
        Handle out;
        if (!error) {
            slot_maker::make(std::move(held), out);
        }
        std::move(done)(error, std::move(out));
    }
};

std::string
manager_impl::name_of_slots(const std::string& pool, const std::vector<std::uint32_t>& numbers) {
    std::string name = pool + ":slot:";
    for (const std::uint32_t one : numbers) {
        name.append(name.back() == ':' ? "" : ",").append(std::to_string(one));
    }
    return name;
}

void manager_impl::acquire_slots(
    std::string pool,
    std::uint32_t size,
    std::size_t wants,
    acquire_options options,
    diagnostics* out,
    handler<error_code, lock> done) {
    const std::lock_guard lock(guard);
    const std::size_t most = std::min<std::size_t>(size, multi_lock_max);
    std::string reason;
    if (options.order != fairness::none) {
        reason = "order is fifo; allowed for a slot: none";
    } else if (wants < 1 || wants > most) {
        reason = std::to_string(wants) + " slots are wanted; allowed: 1 to " + std::to_string(most);
    } else if (wants > 1 && config_.protocol != protocol::guarded) {
        reason = "protocol is plain; allowed for several slots at once: guarded";
    } else {
        validate(options, config_, reason);
    }
    if (!reason.empty()) {
        refuse(out, reason, std::move(done));
        return;
    }
    begin_acquire(
        std::move(pool),
        {.options = options, .slots = size, .wants = static_cast<std::uint32_t>(wants)},
        out,
        std::move(done));
}

void manager_impl::slots_status(
    std::string pool, std::uint32_t slots, handler<error_code, pool_status> done) {
    const auto id = on_cancel(done, [](manager_impl& me, std::uint64_t id) {
        me.statuses_.for_each([&](status_op& op) {
            if (op.id == id) {
                completion<error_code, pool_status> complete = *std::move(op.done);
                me.statuses_.destroy(op);
                std::move(complete)(me.io_, aborted, pool_status());
            }
        });
    });
    completion<error_code, pool_status> waiting(std::move(done), io_);
    const std::lock_guard lock(guard);
    if (!engine_.running()) {
        std::move(waiting)(
            io_, engine_.closing() ? errc::closed : errc::not_running, pool_status());
        return;
    }
    status_op& op = statuses_.create();
    op.id = id;
    op.done.emplace(std::move(waiting));
    const std::uint64_t cookie = cookie_of(op.self);
    drive([&](time_point now) { engine_.ask_slots(cookie, pool, slots, now); });
}

void manager_impl::slots_told(std::uint64_t cookie, pool_status&& found) {
    if (status_op* const op = statuses_.find(handle_of(cookie))) { // else it was cancelled
        completion<error_code, pool_status> complete = *std::move(op->done);
        statuses_.destroy(*op);
        std::move(complete)(io_, error_code(), std::move(found));
    }
}

}}} // namespace redlock::REDLOCK_ABI::detail

// What is associated with the caller's handler goes with it.
template <template <typename, typename> class Associator, typename Handle, typename Candidate>
struct boost::asio::associator<Associator, redlock::detail::give_slots<Handle>, Candidate>
    : Associator<typename redlock::detail::give_slots<Handle>::handler, Candidate> {
    using inner = Associator<typename redlock::detail::give_slots<Handle>::handler, Candidate>;

    static auto get(const redlock::detail::give_slots<Handle>& from) noexcept {
        return inner::get(from.done);
    }
    static auto
    get(const redlock::detail::give_slots<Handle>& from, const Candidate& otherwise) noexcept {
        return inner::get(from.done, otherwise);
    }
};

namespace redlock { inline namespace REDLOCK_ABI {

slot_pool::slot_pool(lock_manager& manager, std::string name, std::size_t size)
    : impl_(detail::manager_access::impl(manager)),
      name_(std::move(name)),
      size_(size) {
    std::string reason;
    if (validate_resource(name_, reason)) {
        throw std::invalid_argument("redlock: the name of the pool: " + reason);
    }
    if (size_ < 1 || size_ > slot_pool_size_max) {
        throw std::invalid_argument(
            "redlock: the size of the pool is " + std::to_string(size_) + "; allowed: 1 to "
            + std::to_string(slot_pool_size_max));
    }
}

slot_pool::executor_type slot_pool::get_executor() const noexcept {
    return impl_->io();
}

void slot_pool::start_acquire(
    impl_ptr impl,
    const std::string& name,
    std::size_t size,
    acquire_options options,
    diagnostics* out,
    handler<acquire_signature> done) {
    impl->acquire_slots(
        name,
        static_cast<std::uint32_t>(size),
        1,
        options,
        out,
        detail::give_slots<slot>{std::move(done)});
}

void slot_pool::start_acquire_many(
    impl_ptr impl,
    const std::string& name,
    std::size_t size,
    std::size_t wants,
    acquire_options options,
    diagnostics* out,
    handler<acquire_many_signature> done) {
    impl->acquire_slots(
        name,
        static_cast<std::uint32_t>(size),
        wants,
        options,
        out,
        detail::give_slots<slots>{std::move(done)});
}

void slot_pool::start_status(
    impl_ptr impl, const std::string& name, std::size_t size, handler<status_signature> done) {
    impl->slots_status(name, static_cast<std::uint32_t>(size), std::move(done));
}

}} // namespace redlock::REDLOCK_ABI
