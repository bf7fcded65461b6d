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
// The same for an INFO that only asks whether a connected server is still fit to vote.
constexpr std::uint16_t checks_fitness = 1;

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
            lose(refusal_of("AUTH", answer.text, secret_), true, now);
        }
        break;
    case command_kind::select:
        if (answer.is_error()) {
            lose(text_of_error(answer.text), true, now);
        }
        break;
    case command_kind::introduce:
        introduced(command, answer, now);
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
            if (asking_clock_) {
                learn_clock_enough(now);
            }
        } else if (asking_clock_) {
            introduction_done(now); // its scripts may read the clock
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
    default:                              // PING; CLIENT SETNAME, optional: any reply is fine
        if (answer.is_error() && !up()) { // but a server may close the connection after it
            said_ = refusal_of("CLIENT SETNAME", answer.text, secret_);
        }
        break;
    }
}

// Short compared with the longest lease, which only the record may tell.
std::chrono::milliseconds connection::fitness_interval() const noexcept {
    const std::chrono::milliseconds least(100);
    return rules_.max_ttl.count() != 0 || ttl_limit_.count() == 0
               ? rules_.fitness_interval
               : std::min(rules_.fitness_interval, std::max(ttl_limit_ / 10, least));
}

// `checks`: a server that is known, and has to be introduced again only if it has changed.
void connection::ask_for_info(bool checks, time_point now) {
    fitness_due_ = later(now, fitness_interval());
    scratch_.clear();
    append_command(scratch_, {"INFO"});
    send(
        scratch_,
        {.kind = command_kind::introduce,
         .round = checks ? checks_fitness : std::uint16_t{0},
         .subject = {}},
        now);
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

void connection::check_health(time_point now) {
    const bool idle = in_flight_.empty();
    check_fitness(now);
    if (idle && rules_.guarded() && serves(now)) {
        ask_for_clock_and_record(now);
    }
}

bool connection::is_unchanged(const server_info& seen, time_point now) const {
    return fitness_.fit && judge(seen, rules_, now).fit && seen.run_id == info_.run_id
           && seen.losses() == info_.losses();
}

void connection::introduced(const in_flight& command, const reply& answer, time_point now) {
    const bool checks = command.what.round == checks_fitness;
    if (checks && answer.text.starts_with("BUSY")) {
        return; // so is the reply to every other command
    }
    if (answer.is_error()) {
        lose(text_of_error(answer.text), true, now);
        return;
    }
    std::optional<server_info> info = parse_info(answer.text);
    if (!info) {
        const bool sentinel = answer.text.find("_mode:sentinel") != std::string_view::npos;
        lose(
            sentinel ? "is a sentinel: configure the masters themselves"
                     : "INFO without run_id, role and uptime: not a Redis server, or a proxy",
            true,
            now);
        return;
    }
    if (checks && is_unchanged(*info, now)) {
        return;
    }
    introducing_again_ = introducing_again_ || checks;
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
    // When evictions begin, no lease may rely on this master any more. When they end, keys may be
    // missing. The record tells both to all clients.
    if (!wrong::evictions_forgiven && info_.may_evict() != (evicting_ == info_.run_id)) {
        evicting_ = info_.may_evict() ? info_.run_id : std::string();
        restarts_ = info_.run_id;
    } else if (restarts_ != info_.run_id) {
        restarts_.clear(); // it was another server
    }
    eligibility judgement = judge(info_, rules_, now, since);
    const bool fit = judgement.fit;
    const bool asks = rules_.guarded() && (fit || !restarts_.empty());
    if (!fit || !asks) {
        fitness_ = std::move(judgement);
    }
    if (!asks) {
        introduction_done(now);
        return;
    }
    if (!fit && up()) {
        events_.admission_changed(master_, now); // before the handshake
    }
    send_handshake(fit, now);
}

// `fit`: it may record a list of members.
void connection::send_handshake(bool fit, time_point now) {
    const std::uint32_t look = members_.look();
    const membership::proposal proposed =
        fit ? members_.proposal_to(master_) : membership::proposal();
    const decimal quarantine(rules_.quarantine_time().count());
    const decimal with_list(proposed.quarantine.count());
    const bool has_default = rules_.quarantine && rules_.founds && rules_.max_ttl.count() == 0;
    const decimal usual(rules_.founding_quarantine().count());
    const std::string losses = wrong::evictions_forgiven ? "-" : info_.losses();
    const std::string id = new_id();
    // A list, the id that the record must have for it, and the quarantine that is recorded with it;
    // then one for a quorum that has none. They may be left out.
    const std::array<std::string_view, 13> words{
        "EVAL",
        guarded_handshake.text,
        "1",
        rules_.record_key,
        info_.run_id,
        losses,
        quarantine,
        !restarts_.empty() ? "1"
        : proposed.unused  ? "2"
                           : "0",
        id,
        proposed.list,
        proposed.id,
        with_list,
        usual};
    scratch_.clear();
    append_command(
        scratch_,
        std::span(words).first(
            has_default             ? 13
            : proposed.list.empty() ? 9
                                    : 12));
    const std::uint16_t round = restarts_.empty() ? 0 : restarts_memory;
    send(
        scratch_,
        {.kind = command_kind::handshake, .round = round, .record = look, .subject = {}},
        now);
}

// Formats the arguments by which a script recognizes the memory record.
void connection::guard_with(std::string_view server) {
    server_ = server;
    guard_.clear();
    append_argument(guard_, server_);
    append_argument(guard_, decimal(quarantine_time().count()));
}

// Without a quarantine, nothing has to be recorded.
std::chrono::milliseconds connection::recorded_max_ttl() const {
    const std::chrono::milliseconds recorded = rules_.ttl_within(quarantine_time());
    const bool must =
        rules_.quarantine || (rules_.max_ttl.count() == 0 && recorded_quarantine_.count() != 0);
    return must ? recorded : std::max(recorded, rules_.usual_max_ttl());
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

// Another server than the previous one, or the same after it was a replica or has evicted keys: its
// uptime does not show the age of its data. The uptime of the first server is trusted, unless it
// was promoted.
time_point connection::known_since(const server_info& next, time_point now) {
    const bool met_another = !info_.run_id.empty() && info_.run_id != next.run_id;
    const bool promoted = !next.promoted_from.empty() && next.promoted_from != promoted_from_;
    const bool evicted =
        !met_another && !info_.run_id.empty()
        && (next.evicted_keys > info_.evicted_keys || (info_.may_evict() && !next.may_evict()));
    if (met_another || promoted || (!wrong::evictions_forgiven && evicted)) {
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
    fitness_ = judge(info_, rules_, now);
    const auto said = read_handshake(got);
    if (said && said->readable) {
        if (command.what.round == restarts_memory) {
            restarts_.clear();
        }
        if (said->server_us != 0) {
            learn_clock(said->server_us, command.sent, now);
        }
        if (record_ != said->record) {
            if (!wrong::sent_in_quarantine) {
                events_.record_changes();
            }
            record_ = said->record;
            ++record_number_;
        }
        const auto longer = recorded_quarantine(record_);
        // With a longer quarantine of the same memory, its end moves by as much.
        const auto moved = std::chrono::microseconds(said->ends_us - quarantine_ends_us_);
        const bool longer_now = moved.count() > 0 && recorded_quarantine_.count() != 0
                                && moved == longer - recorded_quarantine_;
        raised_ = said->raised || longer_now || (raised_ && moved.count() == 0);
        recorded_quarantine_ = longer;
        quarantine(said->quarantine, said->ends_us, now);
        fitness_.confirmed = command.sent >= quarantine_counted_ && restarts_.empty();
        const std::string_view server = record_word(record_);
        if (server.starts_with(info_.run_id)) {
            guard_with(server);
        }
        if (fitness_.fit) {
            members_.read(master_, said->record, command.what.record, now, fitness_.votes_from);
        }
        ttl_limit_ = std::min(recorded_max_ttl(), members_.planned_max_ttl(master_));
    } else if (fitness_.fit) {
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
    learn_clock_enough(now);
    if (fitness_.fit && !restarts_.empty()) { // since this handshake was sent, a step was seen
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
    restarts_ = info_.run_id;
    fitness_.confirmed = false;
    introduce_again(now);
}

// A handshake that was slow shows the server's clock as badly. Then a late command could be
// executed as much later, so no command is sent before a reply has been faster.
void connection::learn_clock_enough(time_point now) {
    asking_clock_ =
        !wrong::slow_clock_trusted && fitness_.fit && clock_.is_vague(rules_.master_timeout);
    if (asking_clock_) {
        ask_for_clock(now);
        return;
    }
    if (!up()) {
        clock_.begin_use();
    }
    introduction_done(now);
}

void connection::introduction_done(time_point now) {
    introducing_again_ = false;
    asking_clock_ = false;
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
    ask_for_info(false, now);
}

void connection::ask_for_clock(time_point now) {
    say(command_kind::read_clock, {"TIME"}, now);
}

// The bounds on its clock widen while no command is sent, and its record may change.
void connection::ask_for_clock_and_record(time_point now) {
    ask_for_clock(now);
    scratch_.clear();
    append_certificate(scratch_);
    send(
        scratch_,
        {.kind = command_kind::read_record, .record = record_number_, .subject = {}},
        now);
}

} // namespace redlock::core
