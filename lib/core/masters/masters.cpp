#include "masters.hpp"

#include <array>
#include <cassert>
#include <functional>

namespace redlock::core {

masters::masters(const settings& rules, connection_events& events, jitter& random)
    : rules_(rules),
      list_(rules),
      all_(rules.size()),
      ttl_limit_(rules.guarded() ? std::chrono::milliseconds(0) : rules.max_ttl) {
    assert(size() >= 1 && size() <= masters_max);
    for (std::size_t i = 0; i < size(); ++i) {
        all_[i].link = std::make_unique<connection>(i, rules, list_, events, random);
        all_[i].pushes = std::make_unique<subscriber>(i, rules, events, random);
    }
}

void masters::start(time_point now) {
    for (master& one : all_) {
        one.link->start(now);
    }
    refresh_due();
}

void masters::stop(std::string_view why, time_point now) {
    for (master& one : all_) {
        one.link->stop(why, now);
        one.pushes->stop(why);
    }
}

void masters::opened(std::size_t link, time_point now) {
    socket(link).opened(now);
    refresh_due();
}

void masters::closed(std::size_t link, std::string_view why, time_point now) {
    socket(link).closed(why, now);
    refresh_due();
}

void masters::received(std::size_t link, std::span<const char> bytes, time_point now) {
    socket(link).received(bytes, now);
    if (link >= size()) {
        refresh_due();
    }
}

void masters::introduce_again(std::size_t master, time_point now) {
    all_[master].link->introduce_again(now);
    refresh_due();
}

// `links_due_` is a lower bound: sending a command lowers it, and a reply leaves it. So a steady
// load never scans all masters.
void masters::refresh_due() noexcept {
    links_due_ = names_due_ = forever;
    for (const master& one : all_) {
        names_due_ = std::min(names_due_, vote_passes_at(one));
        links_due_ = std::min({links_due_, one.link->next_due(), one.pushes->next_due()});
        if (one.otherwise == vote::quarantined && !one.stepped && one.link->judgement().confirmed) {
            links_due_ = std::min(links_due_, one.link->judgement().votes_from);
        }
    }
}

void masters::time_passed(time_point now) {
    if (now >= list_.next_due()) {
        list_.time_passed(now);
        shake_hands(now);
    }
    if (now >= names_due_) {
        pass_on_votes(now);
    }
}

admission_change masters::time_passed(std::size_t master, time_point now) {
    auto& one = all_[master];
    one.link->time_passed(now);
    one.pushes->time_passed(now);
    const bool waits = one.otherwise == vote::quarantined || one.otherwise == vote::duplicate;
    return waits ? assess(master, now) : admission_change();
}

admission_change masters::admission_changed(std::size_t master, time_point now) {
    auto& changed = all_[master];
    up_ = (up_ & ~set_of(master)) | (changed.link->up() ? set_of(master) : 0U);
    changed.queue_refused = changed.queue_refused && changed.link->up();
    admission_change all;
    const auto look_at = [&](std::size_t i) {
        const admission_change one = assess(i, now);
        all.masters |= one.masters;
        all.ready = all.ready || one.ready;
    };
    const std::uint32_t before = std::exchange(adopted_, list_.adopted());
    all.members = before != 0 && before != adopted_;
    if (changed.link->up() || before != adopted_) {
        find_duplicates(master);
        for (std::size_t i = 0; i < size(); ++i) {
            if (i != master) {
                look_at(i);
            }
        }
    }
    look_at(master);
    ttl_limit_ =
        ttl_limit_of(set_where(size(), [this](std::size_t i) { return is_known_member(i); }));
    shake_hands(now);
    return all;
}

void masters::shake_hands(time_point now) {
    for (std::size_t i = 0; i < size(); ++i) {
        if (list_.wants_handshake(i)) {
            all_[i].link->introduce_again(now);
        }
    }
    refresh_due();
}

void masters::change_members(std::optional<member_change> what, time_point now) {
    list_.make(std::move(what), now);
    shake_hands(now);
}

void masters::read_members(time_point now) {
    list_.read_again();
    shake_hands(now);
}

admission_change masters::quarantine(
    std::size_t master, std::chrono::microseconds left, std::int64_t ends_us, time_point now) {
    all_[master].link->quarantine(left, ends_us, now);
    const admission_change change = assess(master, now);
    refresh_due();
    return change;
}

// One server has one vote, whatever its names. The first one that was seen keeps the vote, even
// while it is away: its other name must not vote in addition to what it has already granted. After
// a quarantine nothing of that is left, and the vote passes to the other name. Every client counts
// each server once, so it does not matter that they may do so under different names.
void masters::find_duplicates(std::size_t changed) {
    const auto is_duplicate = [&](const master& one) {
        const std::string& run_id = one.link->info().run_id;
        return !run_id.empty() && std::ranges::any_of(all_, [&](const master& other) {
            return &other != &one && !other.duplicate && other.link->info().run_id == run_id;
        });
    };
    for (master& one : all_) {
        one.duplicate = one.duplicate && is_duplicate(one);
    }
    all_[changed].duplicate = is_duplicate(all_[changed]);
}

// Another name of the same server, which is not away.
std::size_t masters::heir_of(const master& one) const {
    const auto next = std::ranges::find_if(all_, [&](const master& other) {
        return other.duplicate && other.link->up()
               && other.link->info().run_id == one.link->info().run_id;
    });
    return next == all_.end() ? nobody : static_cast<std::size_t>(next - all_.begin());
}

// When a name that is away loses the vote to it.
time_point masters::vote_passes_at(const master& one) const {
    if (one.link->up() || one.duplicate || heir_of(one) == nobody) {
        return forever;
    }
    return later(
        one.link->heard_at(),
        std::max(one.link->quarantine_time(), rules_.recorded_quarantine(rules_.usual_max_ttl())));
}

void masters::pass_on_votes(time_point now) {
    for (master& one : all_) {
        if (now >= vote_passes_at(one)) {
            one.duplicate = true;
            all_[heir_of(one)].duplicate = false;
        }
    }
    refresh_due();
}

vote masters::vote_of(std::size_t master, time_point now) const {
    const auto& one = all_[master];
    const connection& link = *one.link;
    return !link.up()              ? link.refused() ? vote::error : vote::unreachable
           : one.duplicate         ? vote::duplicate
           : !link.judgement().fit ? vote::error
           : !list_.serves(master) ? vote::error
           : (one.stepped && rules_.quarantine) || link.judgement().quarantined(now)
               ? vote::quarantined
           : link.silent() ? vote::timed_out
                           : vote::granted;
}

// Updates whether a master votes, and what it votes if it does not.
admission_change masters::assess(std::size_t master, time_point now) {
    auto& one = all_[master];
    const bool was_ready = ready();
    const vote before = std::exchange(one.otherwise, vote_of(master, now));
    if (before == one.otherwise) {
        return {};
    }
    admitted_ -= one.admitted ? 1U : 0U;
    one.admitted = one.otherwise == vote::granted;
    admitted_ += one.admitted ? 1U : 0U;
    return {.masters = set_of(master), .ready = !was_ready && ready()};
}

std::chrono::milliseconds masters::ttl_limit_of(master_set these) const {
    if (wrong::any_ttl_votes || !rules_.guarded()) {
        return rules_.max_ttl;
    }
    std::array<std::chrono::milliseconds, masters_max> limits{};
    for (const std::size_t i : each_of(these)) {
        limits[i] = all_[i].link->ttl_limit();
    }
    std::ranges::sort(limits, std::greater<>());
    const std::chrono::milliseconds most = limits[majority() - 1];
    return rules_.max_ttl.count() == 0 ? most : std::min(most, rules_.max_ttl);
}

std::chrono::microseconds masters::quarantine_time() const {
    std::chrono::microseconds out = rules_.quarantine_time();
    for (std::size_t i = 0; rules_.guarded() && i < size(); ++i) {
        out = is_known_member(i) ? std::max(out, all_[i].link->quarantine_time()) : out;
    }
    return out;
}

std::optional<admission_change> masters::clock_stepped(std::size_t master, time_point now) {
    if (std::exchange(all_[master].stepped, true)) {
        return std::nullopt;
    }
    if (judge_steps_at_ == forever) {
        judge_steps_at_ = later(now, rules_.master_timeout);
        for (auto& one : all_) {
            if (!one.stepped && one.link->up()) {
                one.link->ask_for_clock(now);
            }
        }
        refresh_due();
    }
    return assess(master, now);
}

first_counter masters::first_counter_at(time_point now) const noexcept {
    std::int64_t latest = 0;
    for (const master& each : all_) {
        if (each.link->up()) {
            latest = std::max(latest, each.link->guard_until(now).not_after_us);
        }
    }
    // The masters do not rely on what follows, nor on other clients that they propose anything.
    if (wrong::first_below_clock) {
        return {1, 0};
    }
    if (wrong::first_without_limit && latest % 2 == 0) {
        latest += 2'000'000;
    }
    if (wrong::offset_counted_once ? latest % 2 == 0 : latest == 0) {
        return {};
    }
    const std::int64_t bound = std::chrono::microseconds(rules_.clock_offset_bound).count();
    return {latest + bound / 4, latest + bound / 4 - bound};
}

std::size_t masters::judge_steps(time_point now) {
    if (now < judge_steps_at_) {
        return 0;
    }
    judge_steps_at_ = forever;
    const auto stepped = static_cast<std::size_t>(std::ranges::count_if(all_, &master::stepped));
    for (master& one : all_) {
        if (std::exchange(one.stepped, false) && stepped == 1 && rules_.quarantine) {
            one.link->restart_memory(now);
        }
    }
    return stepped;
}

std::size_t masters::arbiter_of(std::uint64_t hash_of_key) const noexcept {
    std::size_t best = nobody;
    std::uint64_t highest = 0;
    for (std::size_t i = 0; i < size(); ++i) {
        const std::uint64_t weight = mixed(all_[i].link->info().run_id_hash ^ hash_of_key);
        if (all_[i].admitted && (best == nobody || weight > highest)) {
            best = i;
            highest = weight;
        }
    }
    return size() > 1 ? best : nobody;
}

// One master alone needs no arbiter, but it can keep a queue.
std::size_t masters::queue_master_of(std::string_view key) const noexcept {
    if (size() > 1) {
        return arbiter_of(key);
    }
    return all_[0].admitted ? 0 : nobody;
}

// Round trips of microseconds say nothing about the time that a busy machine takes to reply.
constexpr std::chrono::nanoseconds busy_time = std::chrono::milliseconds(20);

master_set masters::may_be_slow(time_point asked_at, time_point now) const noexcept {
    return set_where(size(), [&](std::size_t i) {
        const connection& link = *all_[i].link;
        const bool early = now - asked_at < std::max(4 * link.round_trip(), busy_time);
        return link.up() && !link.silent() && (link.heard_at() > asked_at || early);
    });
}

time_point masters::quarantined_until(time_point now) const {
    const std::size_t without_majority = size() - std::min(majority(), size()) + 1;
    return nth_largest(all_, without_majority, [now](const master& one) {
        // A record that has changed may have other members only.
        const bool known = !one.stepped && !one.link->introducing_again();
        const time_point end = one.link->judgement().votes_from;
        return one.otherwise == vote::quarantined && known && end > now ? end : never;
    });
}

} // namespace redlock::core
