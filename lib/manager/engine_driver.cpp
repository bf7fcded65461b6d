#include "engine_driver.hpp"

#include "config/explain.hpp"
#include "config/settings_of.hpp"
#include "net/settings_file.hpp"
#include "net/sockets.hpp"

#include <algorithm>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

namespace {

config checked(config configuration) {
    validate(configuration);
    if (!configuration.password_file.empty()) {
        configuration.password = net::password_of_file(configuration.password_file);
    }
    return configuration;
}

} // namespace

engine_driver::engine_driver(
    const boost::asio::any_io_executor& io,
    config configuration,
    time_source time,
    const backend_maker& make)
    : io_(io),
      config_(checked(std::move(configuration))),
      time_(std::move(time)),
      backend_(make ? make(*this) : std::make_unique<net::sockets>(io, config_, *this)),
      engine_(settings_of(config_), *this) {}

engine_driver::~engine_driver() = default;

void engine_driver::schedule_flush() {
    if (turn_posted_) {
        return;
    }
    const bool continues = std::exchange(handler_posted_, false);
    if (!engine_.wants_write() && !continues) {
        turn_passed();
        return;
    }
    turn_posted_ = true;
    io_.post(
        [me = std::static_pointer_cast<engine_driver>(shared_from_this())] { me->end_turn(); });
}

void engine_driver::end_turn() {
    const section lock(*this);
    turn_posted_ = false;
    engine_.flush();
    engine_.wants_write(); // answered by the next line
    write_all();
    backend_->read(); // of the masters that were written to first
    all_received();
}

void engine_driver::all_received() {
    catch_up(received_at_);
    schedule_flush();
    if (turn_posted_) {
        turn_passed(); // the manager's own work does not wait for the last of many turns
    } else {
        backend_->wait();
    }
}

void engine_driver::turn_passed() {
    const time_point own = turn_ended(); // may pass events to the engine
    const time_point next = std::min(own, engine_.next_due());
    if (next != core::forever) {
        backend_->wake_by(next);
    }
}

void engine_driver::write_all() {
    const time_point now = time_.now();
    for (std::size_t i = 0; i < 2 * engine_.size(); ++i) {
        std::string& bytes = engine_.output(i);
        if (!bytes.empty()) {
            if (const std::size_t size = backend_->write(i, bytes); size > 0) {
                engine_.written(i, size, now);
            }
        }
    }
}

void engine_driver::explain(
    diagnostics& out,
    std::string_view resource,
    const error_code& error,
    unsigned attempts,
    clock::duration elapsed,
    const core::ballots& votes) const {
    out.attempts = attempts;
    out.quorum = engine_.majority();
    out.elapsed = std::chrono::duration_cast<std::chrono::microseconds>(elapsed);
    out.votes = engine_.describe(votes, time_.now());
    out.message = message_of(error, out);
    out.resource = resource;
}

void engine_driver::refuse(
    diagnostics* out,
    std::string_view resource,
    const std::string& reason,
    std::chrono::milliseconds ttl) {
    if (out != nullptr) {
        *out = {};
        out->message = reason;
        out->resource = resource;
    }
    if (logs(log_level::error)) {
        log(log_level::error, "refused: " + reason);
    }
    if (ttl > longest_ttl()) {
        dispatch([this](time_point now) { engine_.look_at_limit(now); });
    }
}

bool engine_driver::logs(log_level level) const {
    return config_.log.write && level >= config_.log.level && level != log_level::off;
}

void engine_driver::log(log_level level, std::string_view line) {
    // A resource's name may be any bytes.
    reports.add([this, level, text = printable(line)] { config_.log.write(level, text); });
}

void engine_driver::socket_opened(std::size_t link) {
    const std::size_t number = link % config_.masters.size();
    if (!config_.password_file.empty() && config_.masters[number].password.empty()) {
        try {
            engine_.set_password(number, net::password_of_file(config_.password_file));
        } catch (const net::unusable_file& bad) { // it may be replaced just now: tried again
            backend_->close(link);
            socket_closed(link, bad.reason());
            return;
        }
    }
    dispatch([&](time_point now) { engine_.opened(link, now); });
}

void engine_driver::socket_closed(std::size_t link, std::string_view why) {
    dispatch([&](time_point now) { engine_.closed(link, why, now); });
}

void engine_driver::socket_received(std::size_t link, std::span<const char> bytes) {
    received_at_ = time_.now();
    engine_.received(link, bytes, received_at_);
}

void engine_driver::socket_written(std::size_t link, std::size_t bytes) {
    dispatch([&](time_point now) {
        engine_.written(link, bytes, now);
        write_all(); // what was queued while the socket was busy
    });
}

}}} // namespace redlock::REDLOCK_ABI::detail
