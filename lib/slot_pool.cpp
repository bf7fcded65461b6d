#include "adapted.hpp"
#include "lease_handle.hpp"
#include "manager_access.hpp"
#include "manager_impl.hpp"

#include <redlock/slot_pool.hpp>

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

// Wraps the caller's handler as one for a lock.
template <typename Handle>
auto give_slots(boost::asio::any_completion_handler<void(error_code, Handle)>&& done) {
    return adapt(std::move(done), [](auto caller, error_code error, lock held) {
        Handle out;
        if (!error) {
            slot_maker::make(std::move(held), out);
        }
        std::move(caller)(error, std::move(out));
    });
}

}}} // namespace redlock::REDLOCK_ABI::detail

namespace redlock { inline namespace REDLOCK_ABI {

slot_pool::slot_pool(lock_manager& manager, std::string name, std::size_t size)
    : impl_(detail::manager_access::impl(manager)),
      name_(std::move(name)),
      size_(size) {
    if (const validation valid = validate_resource(name_); !valid) {
        throw std::invalid_argument("redlock: the name of the pool: " + to_string(valid.error()));
    }
    if (size_ < 1 || size_ > slot_pool_size_max) {
        throw std::invalid_argument(
            "redlock: the size of the pool is " + std::to_string(size_) + "; allowed: 1 to "
            + std::to_string(slot_pool_size_max));
    }
}

slot_pool::executor_type slot_pool::get_executor() const noexcept {
    return impl_->io().executor;
}

void slot_pool::start_acquire(
    impl_ptr impl,
    const std::string& name,
    std::size_t size,
    acquire_options options,
    sink votes,
    handler<slot> done) {
    impl->acquire(
        {.resource = name, .options = options, .slots = static_cast<std::uint32_t>(size)},
        votes,
        detail::give_slots<slot>(std::move(done)));
}

void slot_pool::start_acquire_many(
    impl_ptr impl,
    const std::string& name,
    std::size_t size,
    std::size_t wants,
    acquire_options options,
    sink votes,
    handler<slots> done) {
    impl->acquire(
        {.resource = name,
         .options = options,
         .slots = static_cast<std::uint32_t>(size),
         .wants = wants},
        votes,
        detail::give_slots<slots>(std::move(done)));
}

void slot_pool::start_status(
    impl_ptr impl, const std::string& name, std::size_t size, handler<pool_status> done) {
    impl->query_slots(name, static_cast<std::uint32_t>(size), std::move(done));
}

}} // namespace redlock::REDLOCK_ABI
