#include <redlock/blocking.hpp>

#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace blocking {

struct lock::state {
    explicit state(const manager& owner) : locks(owner) {}

    manager locks; // may end before
    redlock::lock handle;
    std::stop_source lost;
};

void lock::releaser::operator()(state* mine) const noexcept {
    const std::unique_ptr<state> ending(mine);
    if (!mine->handle.valid() || mine->locks.in_callback()) {
        return; // the handle releases in the background
    }
    try {
        mine->locks.release(mine->handle);
    } catch (...) { // NOLINT(bugprone-empty-catch): closed, or no memory: the lease expires
    }
}

redlock::lock& lock::async() const {
    if (!state_) {
        throw std::logic_error("redlock::blocking::lock: it is empty (never acquired, or moved "
                               "from)");
    }
    return state_->handle;
}

extend_result lock::extend(std::chrono::milliseconds ttl) {
    redlock::lock& mine = async();
    return state_->locks.call([&](auto token) { return mine.async_extend(ttl, std::move(token)); });
}

release_result lock::release() {
    redlock::lock& mine = async();
    return state_->locks.release(mine);
}

bool lock::held() const noexcept {
    return state_ && state_->handle.held();
}

std::stop_token lock::lost() const {
    return state_ ? state_->lost.get_token() : std::stop_token();
}

std::uint64_t lock::fencing_token() const {
    return async().fencing_token();
}

std::string_view lock::secret() const {
    return async().secret();
}

lock manager::acquire(target wanted, acquire_options options, std::stop_token stop) {
    lock made;
    made.state_.reset(new lock::state(*this));
    redlock::lock& mine = made.state_->handle;
    diagnostics why;
    if (const error_code error = take(std::move(wanted), options, stop, mine, {&why, true})) {
        std::rethrow_exception(detail::explained(error, std::move(why)));
    }
    mine.async_wait_lost([lost = made.state_->lost](error_code failure, loss_reason) mutable {
        if (!failure) {
            lost.request_stop();
        }
    });
    return made;
}

}}} // namespace redlock::REDLOCK_ABI::blocking
