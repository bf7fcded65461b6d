#include <redlock/blocking.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include <thread>

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

} // namespace blocking

}} // namespace redlock::REDLOCK_ABI
