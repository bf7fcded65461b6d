#include "manager_impl.hpp"
#include "member_change.hpp"

#include <redlock/lock_manager.hpp>

#include <mutex>

namespace redlock { inline namespace REDLOCK_ABI {

lock_manager::lock_manager(executor_type executor, config configuration)
    : impl_(std::make_shared<detail::manager_impl>(executor, std::move(configuration))) {}

lock_manager::lock_manager(impl_ptr impl) noexcept : impl_(std::move(impl)) {}

lock_manager::lock_manager(lock_manager&&) noexcept = default;

lock_manager& lock_manager::operator=(lock_manager&& other) noexcept {
    if (this != &other) {
        lock_manager old(std::move(*this));
        impl_ = std::move(other.impl_);
        owns_ = other.owns_;
    }
    return *this;
}

lock_manager::~lock_manager() {
    if (impl_ && owns_) {
        try {
            impl_->shut_down();
        } catch (...) {
            // No memory for the message: the leases end by their ttl.
        }
    }
}

lock_manager::executor_type lock_manager::get_executor() const noexcept {
    return impl_->io().executor;
}

void lock_manager::start_run(impl_ptr impl, handler<> done) {
    impl->run(std::move(done));
}

void lock_manager::start_ready(impl_ptr impl, handler<> done) {
    impl->ready(std::move(done));
}

void lock_manager::start_close(impl_ptr impl, handler<> done) {
    impl->close(std::move(done));
}

void lock_manager::start_acquire(
    impl_ptr impl, detail::lock_request wanted, sink votes, handler<lock> done) {
    impl->acquire(std::move(wanted), votes, std::move(done));
}

void lock_manager::start_change(
    impl_ptr impl, optional_name adds, optional_name removes, sink why, handler<> done) {
    detail::member_changes wanted;
    if (adds) {
        wanted.push_back({true, *std::move(adds), {}});
    }
    if (removes) {
        wanted.push_back({false, *std::move(removes), {}});
    }
    impl->change_members(std::move(wanted), false, why.out, std::move(done));
}

void lock_manager::start_query(impl_ptr impl, target asked, sink votes, handler<lock_status> done) {
    impl->query(asked, votes, std::move(done));
}

metrics lock_manager::get_metrics() const {
    return impl_->get_metrics();
}

health lock_manager::get_health() const {
    return impl_->get_health();
}

const config& detail::shared_manager::configuration() const noexcept {
    return impl_->configuration();
}

std::shared_ptr<void>
detail::shared_manager::common(std::shared_ptr<void> (*make)(const executor_type&)) const {
    const std::lock_guard lock(impl_->guard);
    if (!impl_->common) {
        impl_->common = make(impl_->io().executor);
    }
    return impl_->common;
}

bool detail::shared_manager::reports_here(const lock_manager& manager) noexcept {
    return manager.impl_->reports.calls_here();
}

void detail::shared_manager::require(
    std::string_view resource, const acquire_options& options, const char* with) const {
    if (with != nullptr) {
        exclusive_only(options, with).value();
    }
    check_resource(resource).value();
    validate(options, impl_->configuration());
}

}} // namespace redlock::REDLOCK_ABI
