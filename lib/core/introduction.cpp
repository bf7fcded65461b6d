// How a connection gets to know its server: INFO, the handshake with the memory record, the
// server's clock and the quarantine that follows from them.

#include "command_parts.hpp"
#include "connection.hpp"
#include "decisions.hpp"
#include "guarded_scripts.hpp"
#include "hex.hpp"
#include "login.hpp"
#include "reasons.hpp"

#include <algorithm>
#include <array>
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
    case command_kind::try_script:
        info_.commands.set_ifeq = answer.is_error();
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
    } else if (info_.commands.set_ifeq) {
        // A SET that is executed late could undo a longer extension, so it is used only where
        // scripts are refused.
        info_.commands.set_ifeq = false;
        say(command_kind::try_script, {"EVAL", "return 1", "0"}, now);
    }
    eligibility judgement = judge(info_, rules_, now, since);
    if (rules_.guarded() && judgement.fit) {
        const bool stepped = stepped_ == info_.run_id;
        if (!stepped) {
            stepped_.clear(); // it was another server
        }
        const std::uint32_t look = members_.look();
        const membership::proposal proposed = members_.proposal_to(master_);
        const decimal quarantine(std::max(quarantine_, proposed.quarantine).count());
        const std::string_view promoted = info_.promoted_from;
        const std::string id = new_id();
        // A list and the id that the record must have for it; both may be left out.
        const std::array<std::string_view, 11> words{
            "EVAL",
            guarded_handshake.text,
            "1",
            rules_.record_key,
            info_.run_id,
            promoted.empty() ? "-" : promoted,
            quarantine,
            stepped           ? "1"
            : proposed.unused ? "2"
                              : "0",
            id,
            proposed.list,
            proposed.id};
        scratch_.clear();
        append_command(
            scratch_,
            std::span(words).first(
                proposed.list.empty() ? 9
                : proposed.id.empty() ? 10
                                      : 11));
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
        fitness_.confirmed = command.sent >= quarantine_counted_ && stepped_.empty();
        const std::string_view server = record_word(record_);
        if (server.starts_with(info_.run_id)) {
            guard_with(server);
        }
        members_.read(master_, said->record, command.what.record, now, fitness_.votes_from);
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
        quarantine_counted_ = left.count() > 0 ? later(now, left) : never;
    }
    fitness_.confirmed = fitness_.votes_from <= now;
    fitness_.votes_from = wrong::step_ends_quarantine
                              ? later(now, left)
                              : std::max(later(now, left), quarantine_counted_);
}

void connection::restart_memory(time_point now) {
    stepped_ = info_.run_id;
    fitness_.confirmed = false;
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

} // namespace redlock::core
