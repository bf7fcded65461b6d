// How a connection gets to know its server: INFO, the handshake, and its clock.

#include "connection.hpp"
#include "core/base/hash.hpp"
#include "core/bytes/guarded_scripts.hpp"

#include <array>

namespace redlock::core {

namespace {

// Values of `sent_command::epoch`: an INFO that only asks whether a connected server is still fit
// to vote; a handshake that starts a new memory record, and a look.
constexpr std::uint16_t checks_fitness = 1;
constexpr std::uint16_t restarts_memory = 1;
constexpr std::uint16_t only_looks = 2;

} // namespace

void connection::handle_introduction(
    const in_flight& command, const reply& answer, time_point now) {
    switch (command.what.kind) {
    case command_kind::introduce:
        introduced(command, answer, now);
        break;
    case command_kind::try_script:
        script_refusal_ = answer.is_error() ? refusal_text(answer.text, rules_) : std::string();
        break;
    case command_kind::handshake:
        looked(command, answer, now);
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
    default: // after PING any reply is fine
        logged_in(command.what.kind, answer, now);
        break;
    }
}

// `checks`: a server that is known, and has to be introduced again only if it has changed.
void connection::ask_for_info(bool checks, time_point now) {
    fitness_due_ = later(now, fitness_interval());
    if (!rules_.guarded()) { // with the guarded protocol, the handshake is a script
        ask({.kind = command_kind::try_script}, {"EVAL", "return 1", "0"}, now);
    }
    const std::uint16_t epoch = checks ? checks_fitness : std::uint16_t{0};
    ask({.kind = command_kind::introduce, .epoch = epoch}, {"INFO"}, now);
    // Most often the record is as a handshake would leave it, and a round trip is saved.
    if (rules_.guarded() && !checks) {
        ask({.kind = command_kind::handshake, .epoch = only_looks, .record = members_.look()},
            {"EVAL", guarded_look.text, "1", rules_.record_key},
            now);
    }
}

void connection::introduced(const in_flight& command, const reply& answer, time_point now) {
    const bool checks = command.what.epoch == checks_fitness;
    looking_ = looking_ && checks; // a connection before this one may have waited for its look
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
    const bool same = info->run_id == info_.run_id && info->losses() == info_.losses();
    if (checks && same && fitness_.fit && script_refusal_.empty()
        && judge(*info, rules_, now).fit) {
        return;
    }
    introducing_again_ = introducing_again_ || checks;
    const time_point since = known_since(*info, now);
    if (up()) {
        info->commands = info_.commands; // what was learned: a refused variant stays disabled
    }
    info_ = *std::move(info);
    guard_with(info_.run_id);
    // When evictions begin, no lease may rely on this master any more. When they end, keys may be
    // missing. The record tells both to all clients.
    if (!wrong::evictions_forgiven && info_.may_evict() != (evicting_ == info_.run_id)) {
        evicting_ = info_.may_evict() ? info_.run_id : std::string();
        restarts_ = info_.run_id;
    } else if (restarts_ != info_.run_id) {
        restarts_.clear(); // it was another server
    }
    eligibility judgement = judge(info_, rules_, now, since);
    if (judgement.fit && !script_refusal_.empty()) {
        judgement = {.fit = false, .text = script_refusal_};
    }
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
    if (checks) {
        send_handshake(fit, now);
    } else {
        looking_ = true;
    }
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
    }
    if (promoted) {
        promoted_from_ = next.promoted_from;
    }
    return met_;
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
        came_up();
    }
    if (fitness_.fit && members_.serves(master_)) {
        recheck_.reset();
        check_ = later(now, rules_.health_check_interval);
    } else { // the obstacle may disappear, or an operator may remove it
        const auto longest = std::max(rules_.reconnect_delay_min, rules_.health_check_interval / 5);
        check_ = later(now, recheck_.next(rules_.reconnect_delay_min, longest, random_));
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

// --- The handshake: the master's memory record, and what follows from it, which are the
// quarantine, the longest ttl and the check of each command

void connection::looked(const in_flight& command, const reply& got, time_point now) {
    if (command.what.epoch != only_looks) {
        shook_hands(command, got, now);
    } else if (std::exchange(looking_, false)) {
        const bool fit = judge(info_, rules_, now).fit;
        fit && !needs_handshake(got) ? shook_hands(command, got, now) : send_handshake(fit, now);
    }
}

// Whether the script would change the record: as it decides (guarded_scripts.hpp).
bool connection::needs_handshake(const reply& seen) const {
    const auto said = read_handshake(seen);
    if (!said || !said->readable || !restarts_.empty() || members_.proposes(master_)) {
        return true;
    }
    const std::string_view server = record_word(said->record, 1);
    const std::string losses = info_.losses();
    const auto recorded = recorded_quarantine(said->record);
    const auto list = read_list(last_word(said->record)).what;
    return server.substr(0, server.find(':')) != info_.run_id
           || (losses != "-" && losses != record_word(said->record, 2))
           || said->ends_us - recorded.count() > said->server_us // `born`
           || recorded.count() == 0 || recorded < rules_.asked_quarantine()
           || (members_.enforced() && list == recorded_list::state::none);
}

// `fit`: it may record a list of members.
void connection::send_handshake(bool fit, time_point now) {
    const std::uint32_t look = members_.look();
    const membership::proposal proposed =
        fit ? members_.proposal_to(master_) : membership::proposal();
    const decimal quarantine(rules_.asked_quarantine().count());
    const decimal with_list(proposed.quarantine.count());
    const bool has_default = rules_.quarantine && rules_.founds && rules_.max_ttl.count() == 0;
    // Nobody has a lock on a master without a list, and ours may be wrong: it leaves nothing.
    const bool waits = members_.enforced() && proposed.list.empty();
    const decimal usual(rules_.founding_quarantine().count());
    const std::string losses = wrong::evictions_forgiven ? "-" : info_.losses();
    std::array<unsigned char, 16> random{}; // a record must never be the same as one that was lost
    events_.random(random);
    std::string id(2 * random.size(), '0');
    write_hex(random, id);
    // A list, the id that the record must have for it, and the quarantine that is recorded with it;
    // then one for a quorum that has none, and whether it is off. They may be left out.
    const std::array<std::string_view, 14> words{
        "EVAL",
        guarded_handshake.text,
        "1",
        rules_.record_key,
        info_.run_id,
        losses,
        quarantine,
        !restarts_.empty() ? "1"
        : proposed.unused  ? "2"
        : waits            ? "3"
                           : "0",
        id,
        proposed.list,
        proposed.id,
        with_list,
        usual,
        "off"};
    scratch_.clear();
    append_command(
        scratch_,
        std::span(words).first(
            !rules_.quarantine      ? 14
            : has_default           ? 13
            : proposed.list.empty() ? 9
                                    : 12));
    const std::uint16_t epoch = restarts_.empty() ? 0 : restarts_memory;
    send(scratch_, {.kind = command_kind::handshake, .epoch = epoch, .record = look}, now);
}

void connection::shook_hands(const in_flight& command, const reply& got, time_point now) {
    fitness_ = judge(info_, rules_, now);
    const auto said = read_handshake(got);
    bool adopted = false; // other members
    if (said && said->readable) {
        if (command.what.epoch == restarts_memory) {
            restarts_.clear();
        }
        if (said->server_us != 0) {
            learn_clock(said->server_us, command.sent, now);
        }
        const bool changed = record_ != said->record;
        if (!wrong::sent_in_quarantine && changed) {
            events_.record_changes();
        }
        if (changed) {
            record_ = said->record;
            ++record_number_;
            certificate_.clear();
            append_argument(certificate_, record_); // a string in a reply has the same bytes
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
        const std::string_view server = record_word(record_, 1);
        if (server.starts_with(info_.run_id)) {
            guard_with(server);
        }
        const std::uint32_t members = members_.adopted();
        if (fitness_.fit) {
            members_.read(master_, said->record, command.what.record, now, fitness_.votes_from);
        }
        adopted = members_.adopted() != members;
        const std::chrono::milliseconds recorded = rules_.ttl_within(quarantine_time());
        const bool needs_record = // without a quarantine, nothing has to be recorded
            rules_.quarantine || (rules_.max_ttl.count() == 0 && longer.count() != 0);
        ttl_limit_ = std::min(
            needs_record ? recorded : std::max(recorded, rules_.usual_max_ttl()),
            members_.planned_max_ttl(master_));
    } else if (fitness_.fit) {
        fitness_.fit = false;
        fitness_.text = said || got.text.starts_with("WRONGTYPE") ? other_record_text(rules_)
                        : got.is_error()                          ? refusal_text(got.text, rules_)
                                                                  : "unexpected reply";
    }
    if (adopted) { // whatever happens until its clock is known
        events_.admission_changed(master_, now);
    }
    learn_clock_enough(now);
    if (fitness_.fit && !restarts_.empty()) { // since this handshake was sent, a step was seen
        introduce_again(now);
    }
}

} // namespace redlock::core
