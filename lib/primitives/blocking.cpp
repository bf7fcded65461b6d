#include "blocking_wait.hpp"

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

void throw_error(const error_code& error) {
    throw boost::system::system_error(error);
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

manager::manager(config configuration) : impl_(std::make_shared<impl>(std::move(configuration))) {
    impl_->locks.async_run([](error_code) {});
    impl_->thread = std::thread([&io = impl_->io] { io.run(); });
}

manager::~manager() {
    if (!owner_) {
        return;
    }
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
    const auto begin = [&](auto token) { return impl_->locks.async_ready(std::move(token)); };
    try {
        run(begin, stop, detail::blocking_wait(timeout).end());
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
    if (!impl_->thread.joinable()) { // the manager has ended before the mutex
        detail::throw_error(errc::closed);
    }
}

void manager::on_thread(const std::function<void()>& f) {
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
    asio::post(impl_->io, [cancel] { cancel->emit(asio::cancellation_type::terminal); });
}

} // namespace blocking

}} // namespace redlock::REDLOCK_ABI
