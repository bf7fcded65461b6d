#include "blocking_wait.hpp"
#include "virtual_thread.hpp"

#include <redlock/blocking.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include <semaphore.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace asio = boost::asio;

namespace detail {

void throw_error(const error_code& error) {
    throw boost::system::system_error(error);
}

} // namespace detail

namespace blocking {

struct manager::impl {
    explicit impl(config configuration) : locks(io.get_executor(), std::move(configuration)) {}
    impl(lock_manager made, std::shared_ptr<detail::virtual_thread> time)
        : locks(std::move(made)),
          virtual_time(std::move(time)) {}

    asio::io_context io{1};
    // Calls that begin after `async_close` still get a result.
    asio::executor_work_guard<asio::io_context::executor_type> busy{io.get_executor()};
    lock_manager locks;
    std::thread thread;
    const std::shared_ptr<detail::virtual_thread> virtual_time; // in place of the thread
    std::atomic<bool> ended{false};
};

manager::manager(config configuration) : impl_(std::make_shared<impl>(std::move(configuration))) {
    impl_->locks.async_run([](error_code) {});
    impl_->thread = std::thread([&io = impl_->io] { io.run(); });
}

manager::manager(lock_manager locks, std::shared_ptr<detail::virtual_thread> time)
    : impl_(std::make_shared<impl>(std::move(locks), std::move(time))) {
    impl_->locks.async_run([](error_code) {});
}

manager::~manager() {
    if (!owner_) {
        return;
    }
    impl_->locks.async_close([](error_code) {});
    impl_->busy.reset();
    if (impl_->thread.joinable()) {
        impl_->thread.join();
    }
    impl_->ended = true;
}

lock_manager& manager::async() noexcept {
    return impl_->locks;
}

bool manager::on_own_thread() const noexcept {
    return impl_->virtual_time ? impl_->virtual_time->in_handler()
                               : std::this_thread::get_id() == impl_->thread.get_id();
}

bool manager::ready(std::chrono::milliseconds timeout, std::stop_token stop) {
    const auto begin = [&](auto token) { return impl_->locks.async_ready(std::move(token)); };
    try {
        run(begin, stop, timeout);
    } catch (const boost::system::system_error& error) {
        if (error.code() != asio::error::operation_aborted || stop.stop_requested()) {
            throw;
        }
        return false;
    }
    return true;
}

void manager::check_may_wait(const std::stop_token& stop) const {
    if (on_own_thread()) {
        detail::throw_error(errc::would_deadlock);
    }
    if (stop.stop_requested()) {
        detail::throw_error(asio::error::operation_aborted); // before anything is sent
    }
    if (impl_->ended) { // before the mutex
        detail::throw_error(errc::closed);
    }
}

void manager::on_thread(const std::function<void()>& f) {
    if (impl_->virtual_time) {
        f();
        return;
    }
    std::exception_ptr thrown;
    asio::post(impl_->io, asio::use_future([&] {
                   try {
                       f();
                   } catch (...) {
                       thrown = std::current_exception();
                   }
               }))
        .wait();
    if (thrown) {
        std::rethrow_exception(std::move(thrown));
    }
}

void manager::emit(const cancellation& cancel) {
    asio::post(
        impl_->locks.get_executor(), [cancel] { cancel->emit(asio::cancellation_type::terminal); });
}

void manager::wait(
    const std::function<bool(moment)>& over, time_limit limit, const cancellation& cancel) {
    if (impl_->virtual_time) {
        const auto is_over = [&] { return over(moment::min()); };
        if (!impl_->virtual_time->run_until(is_over, limit)) {
            emit(cancel);
            impl_->virtual_time->run_until(is_over, std::nullopt);
            if (!limit) {
                throw std::logic_error("redlock::testing: a blocking call waits without a limit: "
                                       "nothing in an hour of "
                                       "virtual time ends it");
            }
        }
        return;
    }
    const auto end = detail::blocking_wait(limit ? wait_for(*limit) : wait_for::forever()).end();
    if (end && !over(*end)) {
        emit(cancel);
    }
}

// --- Acquire and release ------------------------------------------------------------------------

namespace {

// The result of an operation that the calling thread starts itself, and a semaphore to wait on,
// because the waits of the standard's atomics yield the processor first. The manager's initiating
// functions are safe in any thread as long as nothing cancels them.
template <typename Value>
struct result {
    result() noexcept { sem_init(&over, 0, 0); }
    result(const result&) = delete;
    result& operator=(const result&) = delete;
    ~result() { sem_destroy(&over); }

    void wait() noexcept {
        while (sem_wait(&over) != 0) {
            // Interrupted by a signal.
        }
    }

    error_code error = errc::closed; // if the handler is destroyed
    Value value = {};
    sem_t over = {};
};

template <typename Value>
class handler {
public:
    handler(result<Value>& to, detail::diagnostics_sink why) noexcept : to_(&to), why_(why) {}
    handler(handler&& other) noexcept : to_(std::exchange(other.to_, nullptr)), why_(other.why_) {}
    handler& operator=(handler&&) = delete;
    ~handler() {
        if (to_ != nullptr) {
            end();
        }
    }

    detail::diagnostics_sink get_diagnostics_sink() const noexcept { return why_; }

    void operator()(const error_code& error, Value value) {
        to_->error = error;
        to_->value = std::move(value);
        end();
    }

private:
    void end() noexcept { sem_post(&std::exchange(to_, nullptr)->over); }

    result<Value>* to_;
    detail::diagnostics_sink why_;
};

} // namespace

error_code manager::take(
    target wanted,
    const acquire_options& options,
    const std::stop_token& stop,
    redlock::lock& out,
    detail::diagnostics_sink why) {
    if (stop.stop_possible() || impl_->virtual_time) {
        error_code error;
        std::tie(error, out) = call(
            [&](auto token) {
                return async().async_acquire(
                    std::move(wanted),
                    options,
                    with_diagnostics(*why.out, asio::as_tuple(std::move(token))));
            },
            stop);
        return error;
    }
    check_may_wait(stop);
    result<redlock::lock> taken;
    async().async_acquire(std::move(wanted), options, handler<redlock::lock>(taken, why));
    taken.wait();
    out = std::move(taken.value);
    return taken.error;
}

release_result manager::release(redlock::lock& mine) {
    if (impl_->virtual_time) {
        return call([&](auto token) { return mine.async_release(std::move(token)); });
    }
    check_may_wait({});
    result<release_result> released;
    mine.async_release(handler<release_result>(released, {}));
    released.wait();
    if (released.error) {
        detail::throw_error(released.error);
    }
    return released.value;
}

// --- A lock -------------------------------------------------------------------------------------

struct lock::state {
    explicit state(const manager& owner) : locks(owner) {}

    manager locks; // may end before
    redlock::lock handle;
    std::stop_source lost;
};

lock::lock() noexcept = default;
lock::lock(std::unique_ptr<state> made) noexcept : state_(std::move(made)) {}
lock::lock(lock&& other) noexcept = default;

lock& lock::operator=(lock&& other) noexcept {
    if (this != &other) {
        const lock old(std::move(*this));
        state_ = std::move(other.state_);
    }
    return *this;
}

lock::~lock() {
    if (!state_ || !state_->handle.valid() || state_->locks.on_own_thread()) {
        return; // the handle releases in the background
    }
    try {
        release();
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
    auto made = std::make_unique<lock::state>(*this);
    diagnostics why;
    if (const error_code error =
            take(std::move(wanted), options, stop, made->handle, {&why, true})) {
        std::rethrow_exception(detail::explained(error, std::move(why)));
    }
    made->handle.async_wait_lost([lost = made->lost](error_code failure, loss_reason) mutable {
        if (!failure) {
            lost.request_stop();
        }
    });
    return lock(std::move(made));
}

} // namespace blocking
}} // namespace redlock::REDLOCK_ABI
