#include "session.hpp"

#include "admission.hpp"

#include <cassert>

namespace redlock::core {

namespace {

std::string limit_text(std::string_view name, std::chrono::milliseconds limit) {
    return std::string(name) + ", " + std::to_string(limit.count()) + " ms";
}

std::string silent_text(const settings& rules) {
    return limit_text("silent for longer than master_timeout", rules.master_timeout);
}

// The loss of a connection. `said`: an error that the server sent during the login, which is the
// reason then; may be empty.
std::string lost_text(std::string_view said, std::string_view why) {
    return said.empty() ? std::string(why)
                        : std::string(text_of_error(said)) + " (" + std::string(why) + ")";
}

} // namespace

void session::start(time_point now) {
    if (state_ == state::idle) {
        open(now);
    }
}

void session::open(time_point now) {
    said_.clear();
    state_ = state::opening;
    wake_ = later(now, rules_.connect_timeout);
    events_.open(link_);
}

void session::opened(time_point now) {
    if (state_ != state::opening) {
        return;
    }
    assert(output_.empty());
    state_ = state::introducing;
    reader_.clear();

    const credentials& mine = rules_.masters[master_];
    if (!mine.password.empty()) {
        secret_ = mine.password;
        mine.username.empty()
            ? say(command_kind::authenticate, {"AUTH", secret_}, now)
            : say(command_kind::authenticate, {"AUTH", mine.username, secret_}, now);
    }
    if (mine.database != 0 && link_ == master_) { // channels have no database
        say(command_kind::select, {"SELECT", std::to_string(mine.database)}, now);
    }
    if (!mine.client_name.empty()) {
        say(command_kind::name_client, {"CLIENT", "SETNAME", mine.client_name}, now);
    }
    introduce(now);
}

std::string session::refusal_of(std::string_view command, std::string_view error) const {
    return core::refusal_of(command, error, secret_);
}

const reply* session::next_reply(std::span<const char> bytes, time_point now) {
    const reply* const next = reader_.next();
    if (next == nullptr && !reader_.error().empty()) {
        lose(
            up() ? reader_.error()
                 : not_redis_text(reader_.error(), {bytes.data(), bytes.size()}, secret_),
            true,
            now);
    }
    return next;
}

void session::logged_in(command_kind what, const reply& got, time_point now) {
    if (!got.is_error()) {
        return;
    }
    if (what == command_kind::authenticate || what == command_kind::select) {
        const bool logs_in = what == command_kind::authenticate;
        lose(refusal_of(logs_in ? "AUTH" : "SELECT", got.text), true, now);
    } else if (what == command_kind::name_client) {
        // Optional, but the server may close the connection after it.
        said_ = refusal_of("CLIENT SETNAME", got.text);
    }
}

void session::came_up() noexcept {
    state_ = state::up;
    delay_.reset();
    why_down_.clear();
}

void session::heard(bool well, time_point now) {
    if (!up()) {
        return;
    }
    if (well) {
        check_ = later(now, rules_.health_check_interval);
    }
    if (silent_ && !overdue(now)) {
        silent_ = false;
        why_down_.clear();
        silence_changed(now);
    }
}

void session::closed(std::string_view why, time_point now) {
    if (begun()) {
        lose(lost_text(up() ? std::string_view() : said_, why), !up() && !said_.empty(), now);
    }
}

void session::lose(std::string_view why, bool refused, time_point now) {
    stop(why);
    state_ = state::waiting;
    wake_ = now + delay_.next(rules_.reconnect_delay_min, rules_.reconnect_delay_max, random_);
    refused_ = refused;
    lost(now);
}

void session::stop(std::string_view why) {
    if (begun()) {
        events_.close(link_);
    }
    state_ = state::idle;
    wake_ = check_ = forever;
    silent_ = false;
    why_down_ = why;
    output_.clear();
}

time_point session::next_due() const noexcept {
    return !up() || silent_ ? wake_ : std::min(later(oldest(), rules_.master_timeout), check_);
}

void session::time_passed(time_point now) {
    if (state_ == state::idle || now < session::next_due()) {
        return;
    }
    if (state_ == state::waiting) {
        open(now);
    } else if (!up()) {
        const std::string limit =
            "connect_timeout (" + std::to_string(rules_.connect_timeout.count()) + " ms) expired ";
        lose(
            lost_text(
                said_,
                limit
                    + (connected() ? "before the server replied"
                       : rules_.masters[master_].tls
                           ? "during name resolution, connect or TLS "
                             "handshake: a port without TLS needs redis://"
                           : "during name resolution or connect")),
            false,
            now);
    } else if (silent_) {
        lose(
            silent_text(rules_)
                + limit_text(", and health_check_interval", rules_.health_check_interval),
            false,
            now);
    } else if (overdue(now)) {
        silent_ = true;
        wake_ = later(now, rules_.health_check_interval);
        why_down_ = silent_text(rules_);
        silence_changed(now);
    } else {
        check_ = later(now, rules_.health_check_interval);
        check_health(now);
    }
}

} // namespace redlock::core
