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
#include <exception>
#include <mutex>
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

namespace {

/// What a thread has the manager's thread do while it waits. In its own frame.
struct errand {
    virtual void run() noexcept = 0;

    errand* next = nullptr;

protected:
    ~errand() = default;
};

/// A semaphore, because the waits of the standard's atomics yield the processor before they sleep.
class event {
public:
    event() noexcept { sem_init(&raised_, 0, 0); }
    event(const event&) = delete;
    event& operator=(const event&) = delete;
    ~event() { sem_destroy(&raised_); }

    void raise() noexcept { sem_post(&raised_); }
    void wait() noexcept {
        while (sem_wait(&raised_) != 0) {
            // Interrupted by a signal.
        }
    }

private:
    sem_t raised_ = {};
};

} // namespace

struct manager::impl {
    explicit impl(config configuration)
        : observed(configuration.observer != nullptr),
          locks(io.get_executor(), std::move(configuration)) {}
    impl(lock_manager made, std::shared_ptr<detail::virtual_thread> time)
        : locks(std::move(made)),
          virtual_time(std::move(time)) {}

    /// Has the manager's thread run it: threads that wait for the manager's mutex instead would be
    /// woken for it, and their requests would leave in more turns.
    /// \throws boost::system::system_error with `errc::closed` after the thread's end
    void ask(errand& wanted) {
        errand* first = errands_.load(std::memory_order_relaxed);
        do { // NOLINT(cppcoreguidelines-avoid-do-while)
            if (first == &ended_) {
                detail::throw_error(errc::closed);
            }
            wanted.next = first;
        } while (!errands_.compare_exchange_weak(first, &wanted, std::memory_order_release));
        if (first != nullptr) {
            return; // it comes for all
        }
        const auto run_all = [this] {
            if (!has_ended()) {
                run_errands(nullptr);
            }
        };
        try {
            asio::post(io, run_all);
        } catch (...) { // no memory: they fail here as they would there
            run_all();
        }
    }
    /// Begins an operation. An observer wants to see it in the thread of its caller.
    void begin(errand& wanted) {
        if (!observed) {
            ask(wanted);
            return;
        }
        wanted.run();
        if (has_ended()) {
            deliver();
        }
    }
    /// Runs those that are there, in the order of their arrival. `then`: what comes before the
    /// next.
    void run_errands(errand* then) noexcept {
        errand* earlier = nullptr;
        for (errand* one = errands_.exchange(then, std::memory_order_acquire); one != nullptr;) {
            one = std::exchange(one->next, std::exchange(earlier, one));
        }
        while (earlier != nullptr) {
            std::exchange(earlier, earlier->next)->run();
        }
    }
    /// After the thread's end: what has come too late ends with `errc::closed`.
    void end() noexcept {
        run_errands(&ended_);
        deliver();
    }
    bool has_ended() const noexcept { return errands_ == &ended_; }

    const bool observed = false;
    asio::io_context io{1};
    // Calls that begin after `async_close` still get a result.
    asio::executor_work_guard<asio::io_context::executor_type> busy{io.get_executor()};
    lock_manager locks;
    std::thread thread;
    const std::shared_ptr<detail::virtual_thread> virtual_time; // in place of the thread

private:
    /// In place of the thread that has ended.
    void deliver() noexcept {
        try {
            const std::lock_guard lock(delivery_);
            io.restart();
            io.poll();
        } catch (...) {
            std::terminate(); // as there
        }
    }

    std::mutex delivery_;
    struct : errand {
        void run() noexcept override {}
    } ended_;                               // the last errand
    std::atomic<errand*> errands_{nullptr}; // the latest first
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
    impl_->end();
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
    if (impl_->has_ended()) {
        detail::throw_error(errc::closed);
    }
}

void manager::on_thread(const std::function<void()>& f) {
    if (impl_->virtual_time) {
        f();
        return;
    }
    struct call final : errand {
        explicit call(const std::function<void()>& wanted) : f(wanted) {}
        void run() noexcept override {
            try {
                f();
            } catch (...) {
                thrown = std::current_exception();
            }
            over.raise();
        }

        const std::function<void()>& f;
        std::exception_ptr thrown;
        event over;
    } wanted(f);
    impl_->ask(wanted);
    wanted.over.wait();
    if (wanted.thrown) {
        std::rethrow_exception(std::move(wanted.thrown));
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

/// An operation that a thread has the manager's thread begin.
template <typename Value, typename Begin>
class operation final : public errand {
public:
    operation(const Begin& begin, detail::diagnostics_sink why) : begin_(begin), why_(why) {}

    void run() noexcept override {
        try {
            begin_(handler(*this));
            begun_ = true;
        } catch (...) {
            thrown_ = std::current_exception();
            over_.raise();
        }
    }

    error_code wait(Value& out) {
        over_.wait();
        if (thrown_) {
            std::rethrow_exception(std::move(thrown_));
        }
        out = std::move(value_);
        return error_;
    }

private:
    class handler {
    public:
        explicit handler(operation& of) noexcept : of_(&of) {}
        handler(handler&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
        handler& operator=(handler&&) = delete;
        ~handler() {
            if (of_ != nullptr && of_->begun_) {
                of_->over_.raise();
            }
        }

        detail::diagnostics_sink get_diagnostics_sink() const noexcept { return of_->why_; }

        void operator()(const error_code& error, Value value) {
            of_->error_ = error;
            of_->value_ = std::move(value);
            std::exchange(of_, nullptr)->over_.raise();
        }

    private:
        operation* of_;
    };

    const Begin& begin_;
    const detail::diagnostics_sink why_;
    error_code error_ = errc::closed; // if the handler is destroyed
    Value value_ = {};
    bool begun_ = false;
    std::exception_ptr thrown_; // instead
    event over_;
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
    const auto begin = [&](auto handler) {
        async().async_acquire(std::move(wanted), options, std::move(handler));
    };
    operation<redlock::lock, decltype(begin)> acquire(begin, why);
    impl_->begin(acquire);
    return acquire.wait(out);
}

release_result manager::release(redlock::lock& mine) {
    if (impl_->virtual_time) {
        return call([&](auto token) { return mine.async_release(std::move(token)); });
    }
    check_may_wait({});
    const auto begin = [&](auto handler) { mine.async_release(std::move(handler)); };
    operation<release_result, decltype(begin)> release(begin, {});
    impl_->begin(release);
    release_result result = {};
    if (const error_code error = release.wait(result)) {
        detail::throw_error(error);
    }
    return result;
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
