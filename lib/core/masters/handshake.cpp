// The handshake of a connection: its master's memory record, and what follows from it, which are
// the quarantine, the longest ttl and the check of each command.

#include "connection.hpp"
#include "core/base/decisions.hpp"
#include "core/base/hash.hpp"
#include "core/bytes/command.hpp"
#include "core/bytes/guarded_scripts.hpp"
#include "reasons.hpp"

#include <algorithm>
#include <array>

namespace redlock::core {

namespace {

// Value of `sent_command::epoch` for a handshake that starts a new memory record.
constexpr std::uint16_t restarts_memory = 1;

// A word of a memory record. The second is its server, and its list of members if that has changed.
std::string_view record_word(std::string_view record, int place) noexcept {
    for (; place > 0; --place) {
        record = record.substr(std::min(record.find(' '), record.size() - 1) + 1);
    }
    return record.substr(0, record.find(' '));
}

} // namespace

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
    const std::string id = new_id();
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

void connection::shook_hands(const in_flight& command, const reply& got, time_point now) {
    fitness_ = judge(info_, rules_, now);
    const auto said = read_handshake(got);
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
        if (fitness_.fit) {
            members_.read(master_, said->record, command.what.record, now, fitness_.votes_from);
        }
        ttl_limit_ = std::min(recorded_max_ttl(), members_.planned_max_ttl(master_));
    } else if (fitness_.fit) {
        fitness_.fit = false;
        fitness_.text = said || got.text.starts_with("WRONGTYPE") ? other_record_text(rules_)
                        : got.is_error()                          ? refusal_text(got.text, rules_)
                                                                  : "unexpected reply";
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

} // namespace redlock::core
