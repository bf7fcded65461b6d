#include "blocking_wait.hpp"
#include "manager_impl.hpp"

#include <redlock/blocking.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include <thread>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace asio = boost::asio;

namespace detail {

void call_state_base::finish() noexcept {
    const std::lock_guard lock(guard_);
    done_ = true;
    changed_.notify_all();
}

void call_state_base::abandon() noexcept {
    const std::lock_guard lock(guard_);
    if (!done_) {
        failure = exception_of(errc::closed);
        done_ = true;
        changed_.notify_all();
    }
}

void throw_error(const error_code& error) {
    throw boost::system::system_error(error);
}

std::exception_ptr exception_of(const error_code& error) {
    return std::make_exception_ptr(boost::system::system_error(error));
}

} // namespace detail

namespace blocking {

struct manager::impl {
    explicit impl(config configuration) : locks(io.get_executor(), std::move(configuration)) {}

    asio::io_context io{1};
    // Calls that begin after `async_close` still get a result.
    asio::executor_work_guard<asio::io_context::executor_type> busy{io.get_executor()};
    lock_manager locks;
    std::thread thread;
};

manager::manager(config configuration) : impl_(std::make_unique<impl>(std::move(configuration))) {
    impl_->locks.async_run([](error_code) {});
    impl_->thread = std::thread([this] { impl_->io.run(); });
}

manager::~manager() {
    impl_->locks.async_close([](error_code) {});
    impl_->busy.reset();
    impl_->thread.join();
}

lock_manager& manager::async() noexcept {
    return impl_->locks;
}

bool manager::on_own_thread() const noexcept {
    return std::this_thread::get_id() == impl_->thread.get_id();
}

bool manager::ready(std::chrono::milliseconds timeout, std::stop_token stop) {
    const auto now = std::chrono::steady_clock::now();
    const bool endless = timeout > std::chrono::hours(24 * 365);
    const auto state = std::make_shared<detail::call_state<>>();
    try {
        wait(
            state,
            [&] { impl_->locks.async_ready(detail::call_token{state}); },
            stop,
            endless ? std::nullopt : std::optional(now + timeout));
    } catch (const boost::system::system_error& error) {
        if (error.code() != asio::error::operation_aborted || stop.stop_requested()) {
            throw;
        }
        return false;
    }
    return true;
}

void manager::wait(
    const std::shared_ptr<detail::call_state_base>& state,
    const std::function<void()>& begin,
    std::stop_token stop,
    std::optional<std::chrono::steady_clock::time_point> until) {
    if (on_own_thread()) {
        detail::throw_error(errc::would_deadlock);
    }
    if (stop.stop_requested()) {
        detail::throw_error(asio::error::operation_aborted); // before anything is sent
    }
    // All on one thread, so that a start or a cancellation never races with the end.
    asio::post(impl_->io, [state, &begin] {
        std::exception_ptr thrown;
        try {
            begin();
        } catch (...) {
            thrown = std::current_exception();
        }
        const std::lock_guard lock(state->guard_);
        if (thrown) {
            state->failure = thrown;
            state->done_ = true;
        }
        state->begun_ = true;
        state->changed_.notify_all();
    });
    const auto cancel = [&] {
        asio::post(impl_->io, [state] { state->cancel_.emit(asio::cancellation_type::terminal); });
    };
    const std::stop_callback on_stop(std::move(stop), cancel);
    // `begin` refers to objects of the caller, so it must have returned as well.
    const auto over = [&] { return state->begun_ && state->done_; };
    std::unique_lock lock(state->guard_);
    if (until && !state->changed_.wait_until(lock, *until, over)) {
        lock.unlock();
        cancel();
        lock.lock();
    }
    state->changed_.wait(lock, over);
    if (state->failure) {
        // Moved out first, so that the manager's thread takes no part in its destruction.
        std::rethrow_exception(std::exchange(state->failure, nullptr));
    }
}

// --- mutex --------------------------------------------------------------------------------------

mutex::mutex(manager& owner, std::string resource, acquire_options options)
    : manager_(owner),
      resource_(std::move(resource)),
      options_(options) {
    detail::share(owner.async())->require(resource_, options_);
}

mutex::~mutex() = default;

void mutex::lock(std::stop_token stop) {
    if (const error_code error = take(options_.wait, stop)) {
        std::rethrow_exception(detail::explained(error, last_attempt()));
    }
}

bool mutex::try_lock() {
    return try_lock_within(wait_for::none(), {});
}

bool mutex::try_lock_within(wait_for limit, std::stop_token stop) {
    const error_code error = take(limit, stop);
    return !error || detail::is_acquired(error, last_attempt());
}

error_code mutex::take(wait_for limit, const std::stop_token& stop) {
    if (manager_.on_own_thread()) {
        return errc::would_deadlock;
    }
    const detail::blocking_wait wait(limit);
    {
        std::unique_lock lock(guard_);
        if (!wait.for_threads(free_, lock, stop, [this] { return !taken_; })) {
            if (stop.stop_requested()) {
                return asio::error::operation_aborted;
            }
            last_attempt_ = detail::another_thread_has(resource_);
            return errc::contended;
        }
        taken_ = true;
    }
    acquire_options options = options_;
    options.wait = wait.for_masters();
    try {
        diagnostics why;
        auto [error, taken] = detail::acquire_blocking(manager_, resource_, options, why, stop);
        std::stop_source lost;
        if (!error) {
            detail::stop_if_lost(taken, lost);
        }
        const std::lock_guard lock(guard_);
        last_attempt_ = std::move(why);
        if (!error) {
            lock_ = std::move(taken);
            lost_ = std::move(lost);
            return {};
        }
        let_others_in();
        return error;
    } catch (...) {
        const std::lock_guard lock(guard_);
        let_others_in();
        throw;
    }
}

void mutex::let_others_in() noexcept {
    taken_ = false;
    free_.notify_one();
}

void mutex::unlock() noexcept {
    redlock::lock ended;
    {
        const std::lock_guard lock(guard_);
        if (!lock_.valid()) {
            return;
        }
        ended = std::move(lock_);
    }
    const std::optional<release_result> result = detail::release_blocking(manager_, ended);
    const std::lock_guard lock(guard_);
    last_release_ = result;
    let_others_in();
}

bool mutex::held() const noexcept {
    const std::lock_guard lock(guard_);
    return lock_.held();
}

time_point mutex::deadline() const noexcept {
    const std::lock_guard lock(guard_);
    return lock_.deadline();
}

std::chrono::nanoseconds mutex::remaining() const noexcept {
    const std::lock_guard lock(guard_);
    return lock_.remaining();
}

std::optional<std::uint64_t> mutex::fencing_token() const {
    const std::lock_guard lock(guard_);
    return lock_.valid() ? lock_.fencing_token() : std::nullopt;
}

std::stop_token mutex::lost() const {
    const std::lock_guard lock(guard_);
    return lost_.get_token();
}

std::optional<release_result> mutex::last_release() const {
    const std::lock_guard lock(guard_);
    return last_release_;
}

diagnostics mutex::last_attempt() const {
    const std::lock_guard lock(guard_);
    return last_attempt_;
}

} // namespace blocking

}} // namespace redlock::REDLOCK_ABI
