#include "connection.hpp"

#include "reasons.hpp"

#include <cassert>

namespace redlock::core {

void connection::stop(std::string_view why, time_point now) {
    if (up() || connecting()) {
        lose(why, false, now);
    }
    session::stop(why);
}

void connection::introduce(time_point now) {
    ++counters_.connects;
    unpublished_.clear();
    warned_ = false;
    clock_.reset();
    ask_for_info(false, now);
}

void connection::ask(
    const sent_command& what, std::initializer_list<std::string_view> words, time_point now) {
    scratch_.clear();
    append_command(scratch_, words);
    send(scratch_, what, now);
}

void connection::lost(time_point now) {
    counters_.disconnects = counters_.connects;
    introducing_again_ = asking_clock_ = false;
    queued_ = written_ = 0;
    events_.noted(master_, why_down_);
    // Observers read the state of the master in this call: it must be down already.
    events_.admission_changed(master_, now);
    awaited_ = 0;
    ring_buffer<in_flight> unanswered = std::exchange(in_flight_, {});
    for (; !unanswered.empty(); unanswered.pop_front()) {
        const sent_command& command = unanswered.front().what;
        if (command.to != nullptr) {
            command.to->replied({.master = master_, .command = command, .now = now}, nullptr);
        }
    }
}

void connection::written(std::size_t bytes, time_point now) noexcept {
    written_ += bytes;
    wrote_at_ = std::max(wrote_at_, now);
    counters_.bytes_sent += bytes;
    ++counters_.writes;
}

std::uint64_t connection::send(std::string_view bytes, const sent_command& what, time_point now) {
    assert(connected());
    output_.append(bytes);
    queued_ += bytes.size();
    in_flight_.push_back({what, now});
    awaited_ += what.locks;
    counters_.commands += what.locks;
    return queued_;
}

void connection::received(std::span<const char> bytes, time_point now) {
    if (!connected()) {
        return;
    }
    counters_.bytes_received += bytes.size();
    reader_.feed(bytes);
    while (connected()) {
        if (!in_flight_.empty() && in_flight_.front().what.in_frame && take_usual(now)) {
            continue;
        }
        const reply* const answer = reader_.next();
        if (answer == nullptr) {
            if (!reader_.error().empty()) {
                lose(
                    up() ? reader_.error()
                         : not_redis_text(reader_.error(), {bytes.data(), bytes.size()}, secret_),
                    true,
                    now);
            }
            break;
        }
        if (in_flight_.empty()) {
            lose(
                answer->is_error() ? "unsolicited reply: " + refusal_of("a command", answer->text)
                                   : "unsolicited reply",
                true,
                now);
            break;
        }
        const in_flight command = in_flight_.front();
        const bool last = command.what.replies == 1;
        settle(last ? command.what.locks : 1, 1, now);
        if (command.what.certified && !last && answer->is_ok()) {
            granted_ |= std::uint64_t{1} << (command.what.replies - 2U);
        } else {
            handle(command, *answer, now);
        }
    }
    heard(fitness_.fit && !fitness_.quarantined(now), now);
}

// The usual reply to a call for several locks is compared, not parsed. Returns false for any other.
bool connection::take_usual(time_point now) {
    const in_flight command = in_flight_.front();
    const bool certificate = command.what.certified && command.what.replies == 1;
    if (command.what.sets_each() && !certificate) {
        return take_grants(now);
    }
    const bool usual = certificate
                           ? command.what.record == record_number_ && reader_.take(certificate_)
                           : command.what.kind == command_kind::remove
                                 && command.what.how == command_variant::evalsha
                                 && reader_.take(all_removed);
    if (usual) {
        settle(command.what.locks, 1, now);
        command.what.to->usual_reply(
            {master_, command.what, command.sent, now},
            certificate ? take_granted() : ~std::uint64_t{0} >> (64U - command.what.locks));
    }
    return usual;
}

// Takes the grants that follow each other. They count at once, or wait for the certificate. Returns
// false if there are none.
bool connection::take_grants(time_point now) {
    const in_flight command = in_flight_.front();
    const std::size_t open = command.what.replies - (command.what.certified ? 1U : 0U);
    const std::size_t row = reader_.take_ok(open);
    if (row == 0) {
        return false;
    }
    settle(row, row, now);
    const std::uint64_t locks = (~std::uint64_t{0} >> (64 - row)) << (open - row);
    if (command.what.certified) {
        granted_ |= locks;
    } else {
        command.what.to->usual_reply({master_, command.what, command.sent, now}, locks);
    }
    return true;
}

// The oldest command has got replies, which settle some of its locks.
void connection::settle(std::size_t locks, std::size_t replies, time_point now) {
    sent_command& oldest = in_flight_.front().what;
    round_trip_ = now - in_flight_.front().sent;
    heard_at_ = now;
    awaited_ -= locks;
    oldest.locks -= static_cast<std::uint8_t>(locks);
    oldest.replies -= static_cast<std::uint8_t>(replies);
    if (oldest.replies == 0) {
        in_flight_.pop_front();
    }
}

void connection::handle(const in_flight& command, const reply& answer, time_point now) {
    if (command.what.to == nullptr) {
        handle_introduction(command, answer, now);
        return;
    }
    if (answer.is_error() && means_ineligible(answer.text)) {
        introduce_again(now);
    }
    command.what.to->replied({master_, command.what, command.sent, now}, &answer);
}

void connection::learn(
    const sent_command& command, const reply& got, const answer& meaning) noexcept {
    server_capabilities& commands = info_.commands;
    const bool missing = meaning.use_eval && got.text.starts_with("NOSCRIPT");
    const bool executed =
        !got.is_error() && (command.in_frame || command.how == command_variant::eval);
    if (executed || missing) {
        commands.learn(command.form, command.kind, command.in_frame, executed);
    } else if (meaning.use_eval && !(command.in_frame && meaning.for_one)) {
        commands.evalsha = false;
    }
}

void connection::published(std::string_view refusal, time_point now) {
    // The text may continue with the arguments, which contain the name of the lock.
    unpublished_ = refusal.substr(0, refusal.find(", with args"));
    if (refusal.empty()) {
        return;
    }
    ++counters_.publish_refused;
    if (!std::exchange(warned_, true)) {
        events_.publish_refused(master_, now);
    }
}

void connection::silence_changed(time_point now) {
    events_.noted(master_, silent() ? why_down() : "answers again");
    events_.admission_changed(master_, now);
}

void connection::time_passed(time_point now) {
    if (confirms_soon() && now >= fitness_.votes_from) {
        introduce_again(now);
    }
    session::time_passed(now);
    if (up() && !silent() && now >= fitness_due_) {
        const bool idle = in_flight_.empty();
        check_fitness(now);
        if (idle && rules_.guarded() && serves(now)) {
            ask_for_clock_and_record(now);
        }
    }
}

void connection::check_health(time_point now) {
    if (!serves(now)) {
        introduce_again(now); // the obstacle may disappear, or an operator may remove it
    } else if (in_flight_.empty() && rules_.guarded()) {
        ask_for_clock_and_record(now);
    } else if (in_flight_.empty()) {
        say(command_kind::ping, {"PING"}, now);
    }
}

} // namespace redlock::core
