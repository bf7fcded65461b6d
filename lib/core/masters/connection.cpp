#include "connection.hpp"

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
    events_.queued();
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
        const reply* const answer = next_reply(bytes, now);
        if (answer == nullptr) {
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
    if (command.what.how == command_variant::native && !certificate) {
        return take_grants(now); // each lock has a reply of its own
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

// Short compared with the longest lease, which only the record may tell.
std::chrono::milliseconds connection::fitness_interval() const noexcept {
    const std::chrono::milliseconds least(100);
    return rules_.max_ttl.count() != 0 || ttl_limit_.count() == 0
               ? rules_.fitness_interval
               : std::min(rules_.fitness_interval, std::max(ttl_limit_ / 10, least));
}

// Whatever makes a master ineligible may have begun or ended: an operator can change it at any
// time.
void connection::check_fitness(time_point now) {
    fitness_due_ = later(now, fitness_interval());
    if (!serves(now)) {
        introduce_again(now);
    } else if (!wrong::fitness_asked_once && !introducing_again_) {
        ask_for_info(true, now);
    }
}

// --- The clock of the server, and its quarantine

void connection::learn_clock(std::int64_t server_us, time_point sent, time_point now) {
    const auto by = clock_.sample(server_us, sent, now, rules_);
    clock_asked_at_ = now;
    if (by != std::chrono::microseconds::zero()) {
        events_.clock_stepped(master_, by, now);
    }
}

void connection::keep_clock(time_point now) {
    if (clock_asked_at_ == never || now >= later(clock_asked_at_, rules_.health_check_interval)) {
        clock_asked_at_ = now;
        ask_for_clock(now);
    }
}

void connection::ask_for_clock(time_point now) {
    ask({.kind = command_kind::read_clock}, {"TIME"}, now);
}

// The bounds on its clock widen while no command is sent, and its record may change.
void connection::ask_for_clock_and_record(time_point now) {
    ask_for_clock(now);
    ask({.kind = command_kind::read_record, .record = record_number_},
        {"GET", rules_.record_key},
        now);
}

void connection::quarantine(std::chrono::microseconds left, std::int64_t ends_us, time_point now) {
    if (ends_us != quarantine_ends_us_) { // a different record: count its quarantine from now
        quarantine_ends_us_ = ends_us;
        quarantine_counted_ = left.count() > 0 ? later(now, left) : never;
    }
    fitness_.confirmed = fitness_.votes_from <= now;
    fitness_.votes_from = wrong::step_ends_quarantine
                              ? later(now, left)
                              : std::max(later(now, left), quarantine_counted_);
}

void connection::restart_memory(time_point now) {
    restarts_ = info_.run_id;
    fitness_.confirmed = false;
    introduce_again(now);
}

// --- What shows that the server remembers: the guard of a script, and the certificate

// Formats the arguments by which a script recognizes the memory record.
void connection::guard_with(std::string_view server) {
    server_ = server;
    guard_.clear();
    append_argument(guard_, server_);
    append_argument(guard_, decimal(quarantine_time().count()));
}

bool connection::certifies(const sent_command& sent, const reply& got) const noexcept {
    if (got.type != reply_type::string) {
        return false;
    }
    return (wrong::present_record_certifies || sent.record == record_number_)
           && (wrong::any_record_certifies || got.text == record_);
}

master_guard connection::guard_until(time_point moment) const noexcept {
    return {
        server_,
        quarantine_time(),
        wrong::no_late_check || wrong::raise_accepts_larger || wrong::heal_after_deadline
            ? 0
            : clock_.not_after(moment, rules_)};
}

void connection::append_guard(std::string& out, time_point moment) const {
    out.append(guard_);
    append_argument(out, decimal(guard_until(moment).not_after_us));
}

} // namespace redlock::core
