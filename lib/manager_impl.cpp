#include "manager_impl.hpp"

#include "explain.hpp"
#include "net/sockets.hpp"
#include "settings_of.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

namespace asio = boost::asio;

namespace {

config checked(config configuration) {
    std::string reason;
    if (validate(configuration, reason)) {
        throw std::invalid_argument("redlock: " + reason);
    }
    return configuration;
}

} // namespace

manager_impl::manager_impl(const asio::any_io_executor& io, config configuration)
    : io_(io),
      config_(checked(std::move(configuration))),
      outside_(std::make_unique<net::sockets>(io, config_, *this)),
      engine_(settings_of(config_), *this) {}

manager_impl::manager_impl(
    const asio::any_io_executor& io,
    config configuration,
    time_source time,
    const outside_maker& make)
    : io_(io),
      config_(checked(std::move(configuration))),
      time_(std::move(time)),
      outside_(make(*this)),
      engine_(settings_of(config_), *this) {}

manager_impl::~manager_impl() = default;

void manager_impl::after() {
    if (turn_posted_) {
        return;
    }
    if (!engine_.wants_write()) {
        end_turn();
        return;
    }
    turn_posted_ = true;
    io_.post([me = self()] {
        const std::lock_guard lock(me->guard);
        me->turn_posted_ = false;
        me->engine_.wants_write();
        me->write_all();
        me->end_turn();
    });
}

void manager_impl::end_turn() {
    if (!ready_.empty() && engine_.running() && engine_.ready()) {
        ready_.complete_all(io_, error_code());
    }
    const time_point next = std::min(engine_.next_due(), watch_.next_due());
    if (next != core::forever) {
        outside_->wake_by(next);
    }
}

void manager_impl::write_all() {
    const time_point now = time_.now();
    for (std::size_t i = 0; i < 2 * engine_.size(); ++i) {
        std::string& bytes = engine_.output(i);
        if (!bytes.empty()) {
            if (const std::size_t size = outside_->write(i, bytes); size > 0) {
                engine_.written(i, size, now);
            }
        }
    }
}

void manager_impl::explain(
    diagnostics& out,
    const error_code& error,
    unsigned attempts,
    clock::duration elapsed,
    const core::ballots& votes) const {
    out.attempts = attempts;
    out.quorum = engine_.rules().quorum();
    out.elapsed = std::chrono::duration_cast<std::chrono::microseconds>(elapsed);
    out.votes = engine_.describe(votes, time_.now());
    out.message = message_of(error, out);
}

// --- The manager's own operations ---------------------------------------------------------------

void manager_impl::run(handler<error_code> done) {
    const std::lock_guard lock(guard);
    if (engine_.closing() || engine_.running()) {
        if (!engine_.closing() && logs(log_level::error)) {
            log(log_level::error, "refused: async_run was called before; a manager runs once");
        }
        completion<error_code>(std::move(done), io_)(
            io_, engine_.closing() ? errc::closed : errc::invalid_argument);
        return;
    }
    on_cancel(done, [](manager_impl& me, std::uint64_t) {
        me.run_cancelled_ = !me.engine_.closing();
        me.begin_close();
    });
    run_.emplace(std::move(done), io_);
    if (logs(log_level::warning)) {
        std::string warnings;
        validate(config_, warnings);
        std::istringstream lines(warnings);
        for (std::string line; std::getline(lines, line);) {
            log(log_level::warning, line);
        }
    }
    drive([this](time_point now) { engine_.start(now); });
}

void manager_impl::ready(handler<error_code> done) {
    const auto id = on_cancel(
        done, [](manager_impl& me, std::uint64_t id) { me.ready_.complete(me.io_, id, aborted); });
    completion<error_code> waiting(std::move(done), io_);
    const std::lock_guard lock(guard);
    if (!engine_.running()) {
        std::move(waiting)(io_, engine_.closing() ? errc::closed : errc::not_running);
        return;
    }
    ready_.add({id, nullptr, std::move(waiting)});
    after();
}

void manager_impl::close(handler<error_code> done) {
    const auto id = on_cancel(done, [](manager_impl& me, std::uint64_t id) {
        me.closing_.complete(me.io_, id, aborted);
    });
    completion<error_code> waiting(std::move(done), io_);
    const std::lock_guard lock(guard);
    if (engine_.closed_down()) {
        std::move(waiting)(io_, error_code());
        return;
    }
    closing_.add({id, nullptr, std::move(waiting)});
    begin_close();
}

void manager_impl::begin_close() {
    drive([this](time_point now) {
        engine_.close(now);
        watch_.end(errc::closed);
    });
}

void manager_impl::shut_down() {
    const std::lock_guard lock(guard);
    begin_close();
}

void manager_impl::closed() {
    outside_->sleep();
    if (run_) {
        completion<error_code> done = *std::move(run_);
        run_.reset();
        std::move(done)(io_, run_cancelled_ ? aborted : error_code());
    }
    ready_.complete_all(io_, errc::closed);
    closing_.complete_all(io_, error_code());
}

metrics manager_impl::get_metrics() const {
    const std::lock_guard lock(guard);
    metrics out = engine_.count();
    out.observer_errors = observer_errors_;
    return out;
}

health manager_impl::get_health() const {
    const std::lock_guard lock(guard);
    return engine_.examine(time_.now());
}

// --- Sockets, time, chance ----------------------------------------------------------------------

void manager_impl::link_opened(std::size_t master) {
    drive([&](time_point now) { engine_.opened(master, now); });
}

void manager_impl::link_closed(std::size_t master, std::string_view why) {
    drive([&](time_point now) { engine_.closed(master, why, now); });
}

void manager_impl::link_received(std::size_t master, std::span<const char> bytes) {
    drive([&](time_point now) { engine_.received(master, bytes, now); });
}

void manager_impl::link_written(std::size_t master, std::size_t bytes) {
    drive([&](time_point now) {
        engine_.written(master, bytes, now);
        write_all(); // what was queued while the socket was busy
    });
}

void manager_impl::time_came() {
    drive([this](time_point now) {
        watch_.time_passed(now);
        engine_.time_passed(now);
    });
}

void manager_impl::open(std::size_t master) {
    outside_->open(master);
}

void manager_impl::close(std::size_t master) {
    engine_.closed_down() ? outside_->finish(master) : outside_->close(master);
}

void manager_impl::random(std::span<unsigned char> out) {
    outside_->random(out);
}

bool manager_impl::logs(log_level level) const {
    return config_.log.write && level >= config_.log.level && level != log_level::off;
}

void manager_impl::log(log_level level, std::string_view line) {
    config_.log.write(level, printable(line)); // a resource's name may be any bytes
}

}}} // namespace redlock::REDLOCK_ABI::detail
