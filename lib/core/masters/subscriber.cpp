#include "subscriber.hpp"

#include "core/base/decisions.hpp"
#include "core/bytes/append_command.hpp"
#include "reasons.hpp"

namespace redlock::core {

void subscriber::watch(std::string_view channel, time_point now) {
    if (!watched_.emplace(channel).second) {
        return;
    }
    if (!wanted()) {
        open(now);
    } else if (liveness_.connected() && !refused_) {
        change(asked::subscribe, {"SUBSCRIBE", channel}, now);
    }
}

void subscriber::unwatch(std::string_view channel, time_point now) {
    const auto found = watched_.find(channel);
    if (found == watched_.end()) {
        return;
    }
    watched_.erase(found);
    if (liveness_.connected()) {
        change(asked::unsubscribe, {"UNSUBSCRIBE", channel}, now);
    }
}

void subscriber::stop(std::string_view why) {
    if (liveness_.begun()) {
        events_.close(rules_.size() + master_);
    }
    liveness_.stop();
    refused_ = false;
    why_not_ = why;
    watched_.clear();
    output_.clear();
    in_flight_ = {};
}

void subscriber::open(time_point now) {
    said_.clear();
    liveness_.open(now);
    events_.open(rules_.size() + master_);
}

void subscriber::opened(time_point now) {
    if (!liveness_.is(liveness::state::opening)) {
        return;
    }
    liveness_.opened();
    reader_.clear();

    const credentials& mine = rules_.masters[master_];
    if (!mine.password.empty()) {
        secret_ = mine.password;
        append_login(output_, mine.username, mine.password);
        in_flight_.push_back({asked::login, now});
    }
    if (!mine.client_name.empty()) {
        say(asked::name, {"CLIENT", "SETNAME", mine.client_name}, now);
    }
    say(asked::ping, {"PING"}, now); // its reply shows that the server accepts the login
    for (const std::string& channel : watched_) {
        say(asked::subscribe, {"SUBSCRIBE", channel}, now);
    }
}

void subscriber::say(
    asked what, std::initializer_list<std::string_view> arguments, time_point now) {
    append_command(output_, arguments);
    in_flight_.push_back({what, now});
}

void subscriber::change(
    asked what, std::initializer_list<std::string_view> arguments, time_point now) {
    if (in_flight_.size() >= watched_.size() + in_flight_max) {
        lose("too many changes in flight", now);
    } else {
        say(what, arguments, now);
    }
}

void subscriber::closed(std::string_view why, time_point now) {
    if (liveness_.begun()) {
        lose(lost_text(liveness_.up() ? std::string_view() : said_, why), now);
    }
}

void subscriber::lose(std::string_view why, time_point now) {
    liveness_.lost(now);
    refused_ = false;
    why_not_ = why;
    output_.clear();
    in_flight_ = {};
    events_.close(rules_.size() + master_);
    events_.noted(master_, "pushes: " + why_not_);
}

void subscriber::received(std::span<const char> bytes, time_point now) {
    if (!liveness_.connected()) {
        return;
    }
    reader_.feed(bytes);
    while (liveness_.connected()) {
        const reply* const got = reader_.next();
        if (got == nullptr) {
            if (!reader_.error().empty()) {
                lose(reader_.error(), now);
            }
            break;
        }
        if (!handle(*got, now) && liveness_.connected()) {
            lose("unsolicited reply", now);
        }
    }
    if (liveness_.up()) {
        liveness_.checked(now);
        if (liveness_.silent() && !liveness_.overdue(oldest(), now)) {
            liveness_.answers_again();
            why_not_.clear();
        }
    }
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
    const asked what = in_flight_.front().what;
    in_flight_.pop_front();
    return answered(what, got, now);
}

bool subscriber::answered(asked what, const reply& got, time_point now) {
    const auto confirms = [&](std::string_view name) {
        return got.is_array(3) && got.elements[0].text == name;
    };
    switch (what) {
    case asked::login:
        if (got.is_error()) {
            lose(refusal_of("AUTH", got.text, secret_), now);
        }
        return got.is_error() || got.type == reply_type::status;
    case asked::name: // optional: an error is accepted, but a server may close after it
        said_ = got.is_error() ? refusal_of("CLIENT SETNAME", got.text, secret_) : "";
        return got.is_error() || got.type == reply_type::status;
    case asked::ping:
        // The connection works even without the permission for PING.
        if (got.is_error() && !got.text.starts_with("NOPERM")) {
            lose(got.text, now);
        } else if (liveness_.is(liveness::state::introducing)) {
            liveness_.introduced();
            why_not_.clear();
        }
        return got.is_error() || got.type == reply_type::status
               || (got.is_array(2) && got.elements[0].text == "pong");
    case asked::subscribe:
        if (got.is_error()) {
            // Once for this connection: an ACL knows only the prefix, so a refusal for one lock
            // holds for all. The rest of the text may name the lock.
            if (!refused_) {
                why_not_ = got.text.substr(0, got.text.find(", with args"));
                events_.noted(master_, "SUBSCRIBE was refused, so waiters poll: " + why_not_);
            }
            refused_ = true;
            return true;
        }
        if (!confirms("subscribe")) {
            return false;
        }
        wrong::confirmation_ignored ? void() : notify(got, {}, now);
        return true;
    case asked::unsubscribe:
        return got.is_error() || confirms("unsubscribe");
    }
    return false;
}

void subscriber::notify(const reply& got, std::string_view release, time_point now) {
    if (watched_.contains(got.elements[1].text)) {
        events_.release_notified(master_, got.elements[1].text, release, now);
    }
}

void subscriber::time_passed(time_point now) {
    switch (liveness_.due(oldest(), now)) {
    case duty::nothing:
        break;
    case duty::open:
        open(now);
        break;
    case duty::give_up_opening:
        lose(lost_text(said_, unopened_text(rules_, master_, liveness_.connected())), now);
        break;
    case duty::fall_silent:
        liveness_.fall_silent(now);
        why_not_ = silent_text(rules_);
        break;
    case duty::give_up_silent:
        lose(gone_silent_text(rules_), now);
        break;
    case duty::ask_after_health:
        liveness_.checked(now);
        if (in_flight_.empty()) {
            say(asked::ping, {"PING"}, now);
        }
        break;
    }
}

} // namespace redlock::core
