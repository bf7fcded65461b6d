#include "connection.hpp"

#include "login.hpp"

#include <cassert>
#include <utility>

namespace redlock::core {

void connection::start(time_point now) {
    if (state_ == state::idle) {
        open(now);
    }
}

void connection::stop(std::string_view why, time_point now) {
    if (state_ == state::opening || state_ == state::introducing || state_ == state::up) {
        lose(why, false, now);
    }
    state_ = state::idle;
    wake_ = forever;
    why_down_ = why;
}

void connection::open(time_point now) {
    state_ = state::opening;
    wake_ = later(now, rules_.connect_timeout);
    events_.open(master_);
}

void connection::opened(time_point now) {
    if (state_ != state::opening) {
        return;
    }
    state_ = state::introducing;
    ++counters_.connects;
    reader_.clear();
    output_.clear();
    queued_ = written_ = 0;
    fsyncs_always_ = false;
    clock_.reset();

    const credentials& mine = rules_.masters[master_];
    if (!mine.password.empty()) {
        scratch_.clear();
        append_login(scratch_, mine);
        send(scratch_, {.kind = command_kind::authenticate, .subject = {}}, now);
    }
    if (mine.database != 0) {
        say(command_kind::select, {"SELECT", std::to_string(mine.database)}, now);
    }
    if (!mine.client_name.empty()) {
        say(command_kind::name_client, {"CLIENT", "SETNAME", mine.client_name}, now);
    }
    say(command_kind::read_fsync, {"CONFIG", "GET", "appendfsync"}, now);
    say(command_kind::introduce, {"INFO"}, now);
}

void connection::say(
    command_kind kind, std::initializer_list<std::string_view> arguments, time_point now) {
    scratch_.clear();
    append_command(scratch_, arguments);
    send(scratch_, {.kind = kind, .subject = {}}, now);
}

void connection::closed(std::string_view why, time_point now) {
    if (state_ == state::opening || state_ == state::introducing || state_ == state::up) {
        lose(why, false, now);
    }
}

void connection::lose(std::string_view why, bool refused, time_point now) {
    const bool was_opened = state_ != state::opening;
    counters_.disconnects += was_opened ? 1U : 0U;
    state_ = state::waiting;
    wake_ = now + delay_.next(rules_.reconnect_delay_min, rules_.reconnect_delay_max, random_);
    check_ = forever;
    silent_ = false;
    introducing_again_ = false;
    refused_ = refused;
    why_down_ = why;
    output_.clear();
    reader_.clear();
    queued_ = written_ = 0;
    events_.close(master_);
    events_.noted(master_, why_down_);
    // Owners look at the state of the master while they are told: it is down already.
    events_.standing_changed(master_, now);
    ring<in_flight> unanswered = std::exchange(in_flight_, {});
    for (; !unanswered.empty(); unanswered.pop_front()) {
        if (unanswered.front().what.subject) {
            events_.dropped(master_, unanswered.front().what, now);
        }
    }
}

void connection::written(std::size_t bytes) noexcept {
    written_ += bytes;
    counters_.bytes_sent += bytes;
    ++counters_.writes;
}

std::uint64_t connection::send(std::string_view bytes, const ticket& what, time_point now) {
    assert(state_ == state::up || state_ == state::introducing);
    output_.append(bytes);
    queued_ += bytes.size();
    in_flight_.push_back({what, now});
    ++counters_.commands;
    return queued_;
}

void connection::received(std::span<const char> bytes, time_point now) {
    if (state_ != state::introducing && state_ != state::up) {
        return;
    }
    counters_.bytes_received += bytes.size();
    reader_.feed(bytes);
    while (state_ == state::introducing || state_ == state::up) {
        const reply* const answer = reader_.next();
        if (answer == nullptr) {
            if (!reader_.error().empty()) {
                lose(reader_.error(), true, now);
            }
            break;
        }
        if (in_flight_.empty()) {
            lose("a reply that nobody asked for", true, now);
            break;
        }
        const in_flight command = in_flight_.front();
        in_flight_.pop_front();
        handle(command, *answer, now);
    }
    if (state_ == state::up) {
        if (fitness_.fit && now >= fitness_.votes_from) {
            check_ = later(now, rules_.health_check_interval);
        }
        if (silent_
            && (in_flight_.empty()
                || now < later(in_flight_.front().sent, rules_.master_timeout))) {
            set_silent(false, now);
        }
    }
}

void connection::handle(const in_flight& command, const reply& answer, time_point now) {
    if (command.what.subject) {
        events_.replied(master_, command.what, answer, command.sent, now);
    } else {
        handle_introduction(command, answer, now);
    }
}

void connection::handle_introduction(
    const in_flight& command, const reply& answer, time_point now) {
    switch (command.what.kind) {
    case command_kind::authenticate:
        if (answer.is_error()) {
            lose(refusal_of("AUTH", answer.text, rules_.masters[master_].password), true, now);
        }
        break;
    case command_kind::select:
        if (answer.is_error()) {
            lose(answer.text, true, now);
        }
        break;
    case command_kind::read_fsync:
        // Not everybody may read the configuration; then the master counts as one that forgets.
        fsyncs_always_ = answer.type == reply_type::array && answer.elements.size() == 2
                         && answer.elements[1].text == "always";
        break;
    case command_kind::introduce:
        introduced(answer, now);
        break;
    case command_kind::handshake:
        shook_hands(answer, command.sent, now);
        break;
    case command_kind::read_clock:
        if (const auto server_us = read_time(answer)) {
            learn_clock(*server_us, command.sent, now);
        }
        break;
    default:
        break; // PING; CLIENT SETNAME and PUBLISH, courtesies: any answer will do
    }
}

void connection::introduced(const reply& answer, time_point now) {
    if (answer.is_error()) {
        lose(answer.text, true, now);
        return;
    }
    std::optional<server_info> info = parse_info(answer.text);
    if (!info) {
        lose("INFO without run_id, role and uptime: not a Redis server, or a proxy", true, now);
        return;
    }
    const ladder kept = info_.commands;
    info_ = *std::move(info);
    if (state_ == state::up) {
        info_.commands = kept; // steps that were taken down stay taken
    } else if (rules_.guarded()) {
        info_.commands = {};
    }
    info_.fsyncs_always = fsyncs_always_;
    fitness judgement = judge(info_, rules_, now);
    if (rules_.guarded() && judgement.fit) {
        scratch_.clear();
        append_handshake(
            scratch_,
            rules_.epoch_key,
            {.run_id = info_.run_id, .quarantine = quarantine_},
            info_.began_us(),
            info_.durable());
        send(scratch_, {.kind = command_kind::handshake, .subject = {}}, now);
        return;
    }
    fitness_ = std::move(judgement);
    introduction_done(now);
}

void connection::shook_hands(const reply& got, time_point sent, time_point now) {
    fitness_ = {};
    if (const auto said = read_handshake(got)) {
        learn_clock(said->server_us, sent, now);
        quarantine(said->quarantine, now);
    } else {
        fitness_.fit = false;
        fitness_.text = got.is_error() ? std::string(got.text) : "unexpected reply";
        if (got.is_error() && refuses_command(got.text)) {
            fitness_.text += ": the guarded protocol needs EVAL (protocol::plain does without on "
                             "Redis 8.4 and Valkey 9)";
        }
    }
    introduction_done(now);
}

void connection::introduction_done(time_point now) {
    introducing_again_ = false;
    if (state_ == state::introducing) {
        state_ = state::up;
        wake_ = forever;
        why_down_.clear();
        delay_.reset();
    }
    check_ = later(now, rules_.health_check_interval);
    events_.standing_changed(master_, now);
}

void connection::learn(const ticket& command, const reply& got, const answer& meaning) noexcept {
    ladder& commands = info_.commands;
    if (has_own_script(command.form, command.kind)) {
        const bool known = command.how == rung::eval && !got.is_error();
        if (known || (meaning.say_otherwise && got.text.starts_with("NOSCRIPT"))) {
            commands.learn(command.form, command.kind, known);
        } else if (meaning.say_otherwise) {
            commands.evalsha = false;
        }
        return;
    }
    bool& knows = command.kind == command_kind::acquire       ? commands.knows_acquire
                  : command.kind == command_kind::raise       ? commands.knows_raise
                  : command.kind == command_kind::remove      ? commands.knows_remove
                  : command.kind == command_kind::take_turn   ? commands.knows_turn
                  : command.kind == command_kind::leave_queue ? commands.knows_leave
                                                              : commands.knows_extend;
    if (command.how == rung::eval) {
        knows = knows || !got.is_error();
    } else if (meaning.say_otherwise && got.text.starts_with("NOSCRIPT")) {
        knows = false;
    } else if (meaning.say_otherwise && command.how == rung::evalsha) {
        commands.evalsha = false;
    } else if (meaning.say_otherwise && command.kind == command_kind::remove) {
        commands.delete_command = native_delete::none;
    } else if (meaning.say_otherwise) {
        commands.set_ifeq = false;
    }
}

void connection::introduce_again(time_point now) {
    if (state_ != state::up || introducing_again_) {
        return;
    }
    introducing_again_ = true;
    say(command_kind::introduce, {"INFO"}, now);
}

void connection::set_silent(bool silent, time_point now) {
    silent_ = silent;
    silent_since_ = now;
    events_.noted(master_, silent ? "silent for longer than master_timeout" : "answers again");
    events_.standing_changed(master_, now);
}

time_point connection::next_due() const noexcept {
    if (state_ != state::up) {
        return wake_;
    }
    if (silent_) {
        return later(silent_since_, rules_.health_check_interval);
    }
    const time_point silence =
        in_flight_.empty() ? forever : later(in_flight_.front().sent, rules_.master_timeout);
    return std::min(silence, check_);
}

void connection::time_passed(time_point now) {
    if (now < next_due()) {
        return;
    }
    switch (state_) {
    case state::idle:
        break;
    case state::waiting:
        open(now);
        break;
    case state::opening:
    case state::introducing:
        lose(
            state_ == state::opening ? "connect_timeout passed before it was connected"
                                     : "connect_timeout passed before it introduced itself",
            false,
            now);
        break;
    case state::up:
        if (silent_) {
            lose("silent for longer than master_timeout and health_check_interval", false, now);
        } else if (
            !in_flight_.empty() && now >= later(in_flight_.front().sent, rules_.master_timeout)) {
            set_silent(true, now);
        } else {
            check_ = later(now, rules_.health_check_interval);
            if (!fitness_.fit || (rules_.guarded() && now < fitness_.votes_from)) {
                introduce_again(now); // what keeps it out may pass, or be taken away by hand
            } else if (in_flight_.empty()) {
                // What is known of its clock gets worse while nothing is asked.
                if (rules_.guarded()) {
                    say(command_kind::read_clock, {"TIME"}, now);
                } else {
                    say(command_kind::ping, {"PING"}, now);
                }
            }
        }
        break;
    }
}

} // namespace redlock::core
