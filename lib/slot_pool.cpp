#include "lease_handle.hpp"
#include "manager_access.hpp"
#include "manager_impl.hpp"

#include <redlock/slot_pool.hpp>

#include <boost/asio/associator.hpp>

#include <stdexcept>

namespace redlock::inline REDLOCK_ABI::detail {

// The caller's handler as one for a lock.
struct give_slot {
    boost::asio::any_completion_handler<void(error_code, slot)> done;

    void operator()(error_code error, lock held) {
        std::move(done)(error, error ? slot() : lease_handle::make_slot(std::move(held)));
    }
};

} // namespace redlock::inline REDLOCK_ABI::detail

// What is associated with the caller's handler goes with it.
template <template <typename, typename> class Associator, typename Candidate>
struct boost::asio::associator<Associator, redlock::detail::give_slot, Candidate>
    : Associator<decltype(redlock::detail::give_slot::done), Candidate> {
    static auto get(const redlock::detail::give_slot& from) noexcept {
        return Associator<std::remove_cvref_t<decltype(from.done)>, Candidate>::get(from.done);
    }
    static auto get(const redlock::detail::give_slot& from, const Candidate& otherwise) noexcept {
        return Associator<std::remove_cvref_t<decltype(from.done)>, Candidate>::get(
            from.done, otherwise);
    }
};

namespace redlock::inline REDLOCK_ABI {

namespace detail {

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

} // namespace detail

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
            "redlock: the size of the pool is " + std::to_string(size_) + ", but must be 1 to "
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
    impl->acquire(
        name, options, out, detail::give_slot{std::move(done)}, static_cast<std::uint32_t>(size));
}

void slot_pool::start_status(
    impl_ptr impl, const std::string& name, std::size_t size, handler<status_signature> done) {
    impl->slots_status(name, static_cast<std::uint32_t>(size), std::move(done));
}

} // namespace redlock::inline REDLOCK_ABI
