#include "connection.hpp"

#include "command_parts.hpp"
#include "decisions.hpp"
#include "hex.hpp"
#include "login.hpp"
#include "reasons.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace redlock::core {

namespace {

// Value of `sent_command::round` for a handshake that starts a new memory record.
constexpr std::uint16_t restarts_memory = 1;

// The second word of a memory record: its server, and its list of members if that has changed.
std::string_view record_word(std::string_view record) noexcept {
    const std::string_view rest = record.substr(std::min(record.find(' '), record.size() - 1) + 1);
    return rest.substr(0, rest.find(' '));
}

} // namespace

void connection::start(time_point now) {
    if (liveness_.is(liveness::state::idle)) {
        open(now);
    }
}

void connection::stop(std::string_view why, time_point now) {
    if (liveness_.begun()) {
        lose(why, false, now);
    }
    liveness_.stop();
    why_down_ = why;
}

void connection::open(time_point now) {
    liveness_.open(now);
    events_.open(master_);
}

void connection::opened(time_point now) {
    if (!liveness_.is(liveness::state::opening)) {
        return;
    }
    liveness_.opened();
    ++counters_.connects;
    unpublished_.clear();
    warned_ = false;
    reader_.clear();
    output_.clear();
    queued_ = written_ = 0;
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
    say(command_kind::introduce, {"INFO"}, now);
}

void connection::say(
    command_kind kind, std::initializer_list<std::string_view> arguments, time_point now) {
    scratch_.clear();
    append_command(scratch_, arguments);
    send(scratch_, {.kind = kind, .subject = {}}, now);
}

void connection::closed(std::string_view why, time_point now) {
    if (liveness_.begun()) {
        lose(why, false, now);
    }
}

void connection::lose(std::string_view why, bool refused, time_point now) {
    counters_.disconnects += liveness_.connected() ? 1U : 0U;
    liveness_.lost(now);
    introducing_again_ = false;
    refused_ = refused;
    why_down_ = why;
    output_.clear();
    queued_ = written_ = 0;
    events_.close(master_);
    events_.noted(master_, why_down_);
    // Observers read the state of the master in this call: it must be down already.
    events_.admission_changed(master_, now);
    awaited_ = 0;
    ring_buffer<in_flight> unanswered = std::exchange(in_flight_, {});
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

std::uint64_t connection::send(std::string_view bytes, const sent_command& what, time_point now) {
    assert(liveness_.connected());
    output_.append(bytes);
    queued_ += bytes.size();
    in_flight_.push_back({what, now});
    awaited_ += what.locks;
    counters_.commands += what.locks;
    return queued_;
}

void connection::received(std::span<const char> bytes, time_point now) {
    if (!liveness_.connected()) {
        return;
    }
    counters_.bytes_received += bytes.size();
    reader_.feed(bytes);
    while (liveness_.connected()) {
        const reply* const answer = reader_.next();
        if (answer == nullptr) {
            if (!reader_.error().empty()) {
                lose(reader_.error(), true, now);
            }
            break;
        }
        if (in_flight_.empty()) {
            lose("unsolicited reply", true, now);
            break;
        }
        const in_flight command = in_flight_.front();
        const bool last = command.what.replies == 1;
        const std::uint8_t settled = last ? command.what.locks : 1;
        awaited_ -= settled;
        if (last) {
            in_flight_.pop_front();
        } else {
            --in_flight_.front().what.replies;
            in_flight_.front().what.locks -= settled;
        }
        round_trip_ = now - command.sent;
        heard_at_ = now;
        handle(command, *answer, now);
    }
    if (up()) {
        if (fitness_.fit && now >= fitness_.votes_from) {
            liveness_.checked(now);
        }
        if (silent() && !liveness_.overdue(oldest(), now)) {
            liveness_.answers_again();
            silence_changed(now);
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
            lose(text_of_error(answer.text), true, now);
        }
        break;
    case command_kind::introduce:
        introduced(answer, now);
        break;
    case command_kind::handshake:
        shook_hands(command, answer, now);
        break;
    case command_kind::read_clock:
        if (const auto server_us = read_time(answer)) {
            learn_clock(*server_us, command.sent, now);
        }
        break;
    case command_kind::read_record:
        if (!certifies(command.what, answer)) {
            introduce_again(now);
        }
        break;
    case command_kind::publish:
        published(answer.is_error() ? answer.text : std::string_view(), now);
        break;
    default:
        break; // PING; CLIENT SETNAME, optional: any reply is fine
    }
}

void connection::introduced(const reply& answer, time_point now) {
    if (answer.is_error()) {
        lose(text_of_error(answer.text), true, now);
        return;
    }
    std::optional<server_info> info = parse_info(answer.text);
    if (!info) {
        lose("INFO without run_id, role and uptime: not a Redis server, or a proxy", true, now);
        return;
    }
    const server_capabilities kept = info_.commands;
    const time_point since = known_since(*info, now);
    info_ = *std::move(info);
    guard_with(info_.run_id);
    if (up()) {
        info_.commands = kept; // keep what was learned: a refused variant stays disabled
    } else if (rules_.guarded()) {
        info_.commands = {};
    }
    eligibility judgement = judge(info_, rules_, now, since);
    if (rules_.guarded() && judgement.fit) {
        const bool stepped = stepped_ == info_.run_id;
        const std::uint32_t look = members_.look();
        const membership::proposal proposed = members_.proposal_to(master_);
        scratch_.clear();
        append_handshake(
            scratch_,
            rules_.record_key,
            {.run_id = info_.run_id, .quarantine = std::max(quarantine_, proposed.quarantine)},
            info_.promoted_from,
            stepped,
            new_id(),
            proposed.list,
            proposed.id);
        const std::uint16_t round = stepped ? restarts_memory : 0;
        send(
            scratch_,
            {.kind = command_kind::handshake, .round = round, .record = look, .subject = {}},
            now);
        return;
    }
    fitness_ = std::move(judgement);
    introduction_done(now);
}

// Formats the arguments by which a script recognizes the memory record.
void connection::guard_with(std::string_view server) {
    server_ = server;
    guard_.clear();
    append_argument(guard_, server_);
    append_argument(guard_, decimal(quarantine_.count()));
}

// A record must never be the same as one that was lost.
std::string connection::new_id() {
    std::array<unsigned char, 16> secret{};
    events_.random(secret);
    std::string out(2 * secret.size(), '0');
    write_hex(secret, out);
    return out;
}

void connection::append_certificate(std::string& out) const {
    append_command(out, {"GET", rules_.record_key});
}

bool connection::certifies(const sent_command& sent, const reply& got) const noexcept {
    if (got.type != reply_type::string) {
        return false;
    }
    return (wrong::present_record_certifies || sent.record == record_number_)
           && (wrong::any_record_certifies || got.text == record_);
}

void connection::keep_clock(time_point now) {
    if (clock_asked_at_ == never || now >= later(clock_asked_at_, rules_.health_check_interval)) {
        clock_asked_at_ = now;
        ask_for_clock(now);
    }
}

void connection::append_guard(std::string& out, time_point moment) const {
    out.append(guard_);
    append_argument(out, decimal(guard_until(moment).not_after_us));
}

// Another server than the previous one, or the same after it was a replica: its uptime does not
// show the age of its data. The uptime of the first server is trusted, unless it was promoted.
time_point connection::known_since(const server_info& next, time_point now) {
    const bool met_another = !info_.run_id.empty() && info_.run_id != next.run_id;
    const bool promoted = !next.promoted_from.empty() && next.promoted_from != promoted_from_;
    if (met_another || promoted) {
        met_ = now;
    }
    if (met_another) {
        promoted_from_.clear();
        quarantine_ends_us_ = 0;
        quarantine_counted_ = never;
    }
    if (promoted) {
        promoted_from_ = next.promoted_from;
    }
    return met_;
}

void connection::shook_hands(const in_flight& command, const reply& got, time_point now) {
    fitness_ = {};
    const auto said = read_handshake(got);
    if (said && said->readable) {
        if (command.what.round == restarts_memory) {
            stepped_.clear();
        }
        if (said->server_us != 0) {
            learn_clock(said->server_us, command.sent, now);
        }
        if (record_ != said->record) {
            record_ = said->record;
            ++record_number_;
        }
        quarantine(said->quarantine, said->ends_us, now);
        const std::string_view server = record_word(record_);
        if (server.starts_with(info_.run_id)) {
            guard_with(server);
        }
        members_.read(master_, said->record, command.what.record, now);
    } else {
        fitness_.fit = false;
        if (said || got.text.starts_with("WRONGTYPE")) {
            fitness_.text = other_record_text(rules_);
        } else {
            fitness_.text = got.is_error() ? text_of_error(got.text) : "unexpected reply";
            if (got.is_error()) {
                fitness_.text += advice_on_refusal(got.text, rules_);
            }
        }
    }
    introduction_done(now);
    if (fitness_.fit && !stepped_.empty()) { // a clock step was seen after this handshake was sent
        introduce_again(now);
    }
}

void connection::quarantine(std::chrono::microseconds left, std::int64_t ends_us, time_point now) {
    if (ends_us != quarantine_ends_us_) { // a different record: count its quarantine from now
        quarantine_ends_us_ = ends_us;
        quarantine_counted_ = later(now, left);
    }
    fitness_.votes_from = wrong::step_ends_quarantine
                              ? later(now, left)
                              : std::max(later(now, left), quarantine_counted_);
}

void connection::restart_memory(time_point now) {
    stepped_ = info_.run_id;
    introduce_again(now);
}

void connection::introduction_done(time_point now) {
    introducing_again_ = false;
    if (!up()) {
        liveness_.introduced();
        why_down_.clear();
    }
    if (fitness_.fit && members_.serves(master_)) {
        liveness_.well();
        liveness_.checked(now);
    } else {
        liveness_.ailing(now); // the obstacle may disappear, or an operator may remove it
    }
    events_.admission_changed(master_, now);
}

void connection::learn(
    const sent_command& command, const reply& got, const answer& meaning) noexcept {
    server_capabilities& commands = info_.commands;
    if (command.shared) {
        if (!got.is_error() || got.text.starts_with("NOSCRIPT")) {
            commands.learn_batch(command.kind, !got.is_error());
        } else if (meaning.use_eval && command.how != command_variant::eval && !meaning.for_one) {
            commands.evalsha = false;
        }
        return;
    }
    if (has_own_script(command.form, command.kind)) {
        const bool known = command.how == command_variant::eval && !got.is_error();
        if (known || (meaning.use_eval && got.text.starts_with("NOSCRIPT"))) {
            commands.learn(command.form, command.kind, known);
        } else if (meaning.use_eval) {
            commands.evalsha = false;
        }
        return;
    }
    bool& knows = command.kind == command_kind::raise         ? commands.knows_raise
                  : command.kind == command_kind::remove      ? commands.knows_remove
                  : command.kind == command_kind::take_turn   ? commands.knows_turn
                  : command.kind == command_kind::leave_queue ? commands.knows_leave
                  : command.kind == command_kind::heal        ? commands.knows_heal
                                                              : commands.knows_extend;
    if (command.how == command_variant::eval) {
        knows = knows || !got.is_error();
    } else if (meaning.use_eval && got.text.starts_with("NOSCRIPT")) {
        knows = false;
    } else if (meaning.use_eval && command.how == command_variant::evalsha) {
        commands.evalsha = false;
    } else if (meaning.use_eval && command.kind == command_kind::remove) {
        commands.delete_command = native_delete::none;
    } else if (meaning.use_eval) {
        commands.set_ifeq = false;
    }
}

void connection::note_published(std::string_view refusal, time_point now) {
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

void connection::introduce_again(time_point now) {
    if (!up() || introducing_again_) {
        return;
    }
    introducing_again_ = true;
    say(command_kind::introduce, {"INFO"}, now);
}

void connection::ask_for_clock(time_point now) {
    say(command_kind::read_clock, {"TIME"}, now);
}

void connection::ask_for_record(time_point now) {
    scratch_.clear();
    append_certificate(scratch_);
    send(
        scratch_,
        {.kind = command_kind::read_record, .record = record_number_, .subject = {}},
        now);
}

void connection::silence_changed(time_point now) {
    events_.noted(master_, silent() ? silent_text(rules_) : "answers again");
    events_.admission_changed(master_, now);
}

void connection::time_passed(time_point now) {
    switch (liveness_.due(oldest(), now)) {
    case duty::nothing:
        break;
    case duty::open:
        open(now);
        break;
    case duty::give_up_opening:
        lose(
            liveness_.connected() ? not_introduced_text(rules_) : not_connected_text(rules_),
            false,
            now);
        break;
    case duty::fall_silent:
        liveness_.fall_silent(now);
        silence_changed(now);
        break;
    case duty::give_up_silent:
        lose(gone_silent_text(rules_), false, now);
        break;
    case duty::ask_after_health:
        liveness_.checked(now);
        if (!fitness_.fit || !members_.serves(master_)
            || (rules_.guarded() && now < fitness_.votes_from)) {
            introduce_again(now); // the obstacle may disappear, or an operator may remove it
        } else if (in_flight_.empty()) {
            // The bounds on its clock widen while no command is sent, and its record may change.
            if (rules_.guarded()) {
                ask_for_clock(now);
                ask_for_record(now);
            } else {
                say(command_kind::ping, {"PING"}, now);
            }
        }
        break;
    }
}

} // namespace redlock::core
