#include "subscriber.hpp"

#include "core/base/decisions.hpp"
#include "core/bytes/append_command.hpp"

namespace redlock::core {

void subscriber::watch(std::string_view channel, time_point now) {
    if (!watched_.emplace(channel).second) {
        return;
    }
    start(now);
    if (connected() && !forbidden_) {
        change(command_kind::subscribe, channel, now);
    }
}

void subscriber::unwatch(std::string_view channel, time_point now) {
    const auto found = watched_.find(channel);
    if (found == watched_.end()) {
        return;
    }
    watched_.erase(found);
    if (connected()) {
        change(command_kind::unsubscribe, channel, now);
    }
}

void subscriber::stop(std::string_view why) {
    session::stop(why);
    forbidden_ = false;
    watched_.clear();
    in_flight_ = {};
}

void subscriber::introduce(time_point now) {
    say(command_kind::ping, {"PING"}, now); // its reply shows that the server accepts the login
    for (const std::string& channel : watched_) {
        say(command_kind::subscribe, {"SUBSCRIBE", channel}, now);
    }
}

void subscriber::say(
    command_kind what, std::initializer_list<std::string_view> words, time_point now) {
    append_command(output_, words);
    events_.queued();
    in_flight_.push_back({what, now});
}

void subscriber::change(command_kind what, std::string_view channel, time_point now) {
    if (in_flight_.size() >= watched_.size() + in_flight_max) {
        lose("too many changes in flight", false, now);
    } else {
        say(what, {what == command_kind::subscribe ? "SUBSCRIBE" : "UNSUBSCRIBE", channel}, now);
    }
}

void subscriber::lost(time_point /*now*/) {
    forbidden_ = false;
    in_flight_ = {};
    events_.noted(master_, "pushes: " + why_down());
}

void subscriber::received(std::span<const char> bytes, time_point now) {
    if (!connected()) {
        return;
    }
    reader_.feed(bytes);
    while (const reply* const got = connected() ? next_reply(bytes, now) : nullptr) {
        if (!handle(*got, now) && connected()) {
            lose("unsolicited reply", false, now);
        }
    }
    heard(true, now);
}

// Returns false if it is invalid.
bool subscriber::handle(const reply& got, time_point now) {
    if (got.is_array(3) && got.elements[0].text == "message") {
        ++messages_;
        notify(got, got.elements[2].text, now);
        return true;
    }
    if (in_flight_.empty()) {
        return false;
    }
    const command_kind what = in_flight_.front().what;
    in_flight_.pop_front();
    const auto confirms = [&](std::string_view name) {
        return got.is_array(3) && got.elements[0].text == name;
    };
    switch (what) {
    case command_kind::ping:
        // The connection works even without the permission for PING.
        if (got.is_error() && !got.text.starts_with("NOPERM")) {
            lose(got.text, false, now);
        } else if (!up()) {
            came_up();
        }
        return got.is_error() || got.type == reply_type::status
               || (got.is_array(2) && got.elements[0].text == "pong");
    case command_kind::subscribe:
        if (got.is_error()) {
            // Once for this connection: an ACL knows only the prefix, so a refusal for one lock
            // holds for all. The rest of the text may name the lock.
            if (!std::exchange(forbidden_, true)) {
                why_down_ = got.text.substr(0, got.text.find(", with args"));
                events_.noted(master_, "SUBSCRIBE was refused, so waiters poll: " + why_down_);
            }
            return true;
        }
        if (!confirms("subscribe")) {
            return false;
        }
        wrong::confirmation_ignored ? void() : notify(got, {}, now);
        return true;
    case command_kind::unsubscribe:
        return got.is_error() || confirms("unsubscribe");
    default:
        logged_in(what, got, now);
        return got.is_error() || got.type == reply_type::status;
    }
}

void subscriber::notify(const reply& got, std::string_view release, time_point now) {
    if (watched_.contains(got.elements[1].text)) {
        events_.release_notified(master_, got.elements[1].text, release, now);
    }
}

void subscriber::check_health(time_point now) {
    if (in_flight_.empty()) {
        say(command_kind::ping, {"PING"}, now);
    }
}

} // namespace redlock::core
