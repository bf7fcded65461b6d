#include "blocking_wait.hpp"
#include "errand.hpp"
#include "virtual_thread.hpp"

#include <redlock/blocking.hpp>

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
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
    explicit impl(config configuration)
        : observed(configuration.observer != nullptr),
          locks(io.get_executor(), std::move(configuration)) {}
    impl(lock_manager made, std::shared_ptr<detail::virtual_thread> time)
        : locks(std::move(made)),
          virtual_time(std::move(time)) {}

    /// Has the manager's thread run it: threads that wait for the manager's mutex instead would be
    /// woken for it, and their requests would leave in more turns.
    /// \throws boost::system::system_error with `errc::closed` after the thread's end
    void ask(detail::errand& wanted) {
        detail::errand* first = errands_.load(std::memory_order_relaxed);
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
    void begin(detail::errand& wanted) {
        if (!observed) {
            ask(wanted);
            return;
        }
        wanted.run();
        if (has_ended()) {
            deliver();
        }
    }
    /// Begins an operation, and waits for its result.
    template <typename Value, typename Begin>
    error_code perform(
        manager& me,
        const Begin& begins,
        const std::stop_token& stop,
        Value& out,
        detail::diagnostics_sink why) {
        me.check_may_wait(stop);
        const cancellation cancel = stop.stop_possible() || virtual_time
                                        ? std::make_shared<asio::cancellation_signal>()
                                        : nullptr;
        detail::operation_errand<Value, Begin> wanted(threads, begins, why, cancel);
        cancel ? me.on_thread([&] { wanted.run(); }) : begin(wanted);
        const std::stop_callback on_stop(stop, [&] { me.emit(cancel); });
        if (virtual_time) {
            me.wait([&](moment) { return wanted.is_over(); }, std::nullopt, cancel);
        }
        return wanted.wait(out);
    }
    /// Runs those that are there, in the order of their arrival. `then`: what comes before the
    /// next.
    void run_errands(detail::errand* then) noexcept {
        detail::errand* earlier = nullptr;
        for (detail::errand* one = errands_.exchange(then, std::memory_order_acquire);
             one != nullptr;) {
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
    std::atomic<bool> contacted{false}; // or has waited for it
    asio::io_context io{1};
    // Calls that begin after `async_close` still get a result.
    asio::executor_work_guard<asio::io_context::executor_type> busy{io.get_executor()};
    detail::waker threads{io};
    lock_manager locks;
    std::stop_source closing; // for threads that wait for each other
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
    struct : detail::errand {
        void run() noexcept override {}
    } ended_;                                       // the last errand
    std::atomic<detail::errand*> errands_{nullptr}; // the latest first
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
    impl_->closing.request_stop();
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

bool manager::in_callback() const noexcept {
    const bool handler = impl_->virtual_time ? impl_->virtual_time->in_handler()
                                             : std::this_thread::get_id() == impl_->thread.get_id();
    return handler || detail::shared_manager::reports_here(impl_->locks);
}

std::stop_token manager::closing() const noexcept {
    return impl_->closing.get_token();
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
    if (in_callback()) {
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
    struct call final : detail::errand {
        call(const std::function<void()>& wanted, detail::waker& threads)
            : f(wanted),
              over(threads) {}
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
        detail::event over;
    } wanted(f, impl_->threads);
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

error_code manager::take(
    target wanted,
    const acquire_options& options,
    const std::stop_token& stop,
    redlock::lock& out,
    detail::diagnostics_sink why) {
    // A single attempt of a manager that was made just now would find no master connected.
    if (options.wait == wait_for::none() && !impl_->contacted) {
        const detail::shared_manager locks(async());
        static_cast<void>(ready(locks.configuration().connect_timeout, stop));
        impl_->contacted = true;
    }
    const auto begin = [&](auto handler) {
        async().async_acquire(std::move(wanted), options, std::move(handler));
    };
    return impl_->perform(*this, begin, stop, out, why);
}

release_result manager::release(redlock::lock& mine) {
    const auto begin = [&](auto handler) { mine.async_release(std::move(handler)); };
    release_result result = {};
    if (const error_code error = impl_->perform(*this, begin, {}, result, {})) {
        detail::throw_error(error);
    }
    return result;
}

} // namespace blocking
}} // namespace redlock::REDLOCK_ABI
