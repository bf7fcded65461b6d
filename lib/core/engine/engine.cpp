#include "engine.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace redlock::core {

namespace {

// The part of the metrics of a master in which a vote of this kind is counted.
counts_per<vote::duplicate> master_metrics::*counts_of(command_kind kind) noexcept {
    return kind == command_kind::acquire  ? &master_metrics::acquire_votes
           : kind == command_kind::remove ? &master_metrics::release_votes
                                          : &master_metrics::extend_votes;
}

} // namespace

engine::engine(settings rules, engine_callbacks& outside)
    : rules_(std::move(rules)),
      host_(outside),
      random_(drawn()),
      masters_(rules_, *this, random_),
      limits_(rules_.size(), rules_.removals_max, rules_.turn_max) {}

engine::~engine() = default;

std::uint64_t engine::drawn() const {
    std::array<unsigned char, sizeof(std::uint64_t)> bytes{};
    host_.random(bytes);
    std::uint64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
}

void engine::start(time_point now) {
    assert(life_ == life::created);
    life_ = life::running;
    look_around();
    masters_.start(now);
}

void engine::close(time_point now) {
    if (closing()) {
        return;
    }
    const bool ran = life_ == life::running;
    life_ = life::closing;
    close_by_ = ran ? later(now, rules_.master_timeout) : now;
    acquires_.for_each([&](acquire_call& wanted) { end(wanted, errc::closed, now); });
    claims_.for_each([&](claim& lease) {
        if (lease.is_held()) {
            decided(lease, lease.stop(loss_reason::closed), now);
        }
    });
    queries_.end_all();
    finish_closing(now);
}

// Closing ends when every holder has ended its lease and every sent removal has a reply, or after
// `master_timeout` without progress. A lease that its holder has not ended stays until its ttl: its
// code may still run.
void engine::finish_closing(time_point now) {
    if (life_ != life::closing || (now < close_by_ && waits_to_close())) {
        return;
    }
    life_ = life::closed;
    end_finished(forever);
    masters_.stop("the manager was closed", now);
    claims_.for_each([&](claim& ended) {
        if (ended.acts() || (ended.is_ending() && ended.result_wanted())) {
            host_.removed(ended, release_result::uncertain);
        }
        timers_.cancel(ended.wake);
        claims_.destroy(ended);
    });
    host_.closed();
}

// --- Events

void engine::opened(std::size_t link, time_point now) {
    masters_.opened(link, now);
}

void engine::closed(std::size_t link, std::string_view why, time_point now) {
    masters_.closed(link, why, now);
    if (link >= size()) {
        notifications_changed(now);
    }
    end_of_event(now);
}

void engine::received(std::size_t link, std::span<const char> bytes, time_point now) {
    masters_.received(link, bytes, now);
    if (link >= size()) {
        notifications_changed(now);
    }
    end_of_event(now);
}

void engine::written(std::size_t link, std::size_t bytes, time_point now) {
    if (link < size()) {
        masters_[link].link->written(bytes, now);
        end_of_event(now);
    }
}

void engine::end_of_event(time_point now) {
    if (!finishing_.empty()) {
        end_finished(now);
    }
    claims_.shrink([this](claim& one) { timers_.remove(one.wake); });
    acquires_.shrink([this](acquire_call& one) { timers_.remove(one.wake); });
    finish_closing(now);
}

time_point engine::next_due() const noexcept {
    return closed_down()
               ? forever
               : std::min({timers_.next(), masters_.next_due(), limits_.due(), close_by_});
}

void engine::time_passed(time_point now) {
    const std::size_t stepped = masters_.judge_steps(now);
    if (stepped > 1) {
        log(log_level::warning,
            "the clocks of " + std::to_string(stepped)
                + " masters seem to have been stepped at once: taken for a step of this machine's "
                  "clock");
    }
    masters_.time_passed(now);
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        voters_changed(masters_.time_passed(i, now), now);
    }
    notifications_changed(now);
    // The rest stays due: `next_due` reports it, and other work of the event loop runs in between.
    std::size_t fired = 0;
    std::size_t looks = 16 * rules_.turn_max; // at a timer that was moved, a look costs little
    for (; fired < rules_.turn_max && looks > 0 && timers_.next() <= now; --looks) {
        if (const timer* const due = timers_.pop(now)) {
            fire(*due, now);
            ++fired;
        }
    }
    if (now >= limits_.due()) {
        limits_.clear_due();
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            send_pending(i, now);
        }
    }
    end_of_event(now);
    masters_.refresh_due();
}

void engine::fire(const timer& due, time_point now) {
    switch (due.owner) {
    case timer_owner::acquire:
        if (acquire_call* const wanted = acquires_.find(due.subject)) {
            acquire_due(*wanted, now);
        }
        break;
    case timer_owner::query:
        queries_.due(due.subject);
        break;
    case timer_owner::wait_queue:
        if (wait_queue* const unused = queues_.find(due.subject);
            unused != nullptr && std::exchange(unused->lingers, false)) {
            queues_.unwatch(*unused, now);
            end_if_unused(*unused);
        }
        break;
    case timer_owner::claim:
        if (claim* const owner = claims_.find(due.subject)) {
            claim_due(*owner, now);
        }
        break;
    }
}

void engine::claim_due(claim& one, time_point now) {
    if (one.is_ending()) {
        removal_due(one, now);
        return;
    }
    if (one.is_lost()) {
        end_late(one, now);
        return;
    }
    for (steps what = steps::none; one.is_held() && what != steps::later;) {
        master_set silent = 0;
        what = one.due(silent, at(now));
        for (const std::size_t i : each_of(silent)) {
            ++masters_.counters(i).extend_votes[vote::timed_out];
        }
        decided(one, what, now); // it may end here
        if (has(what, steps::renew)) {
            return;
        }
    }
}

// Replies to commands that are of no claim: of the holder, of the fair queue, of scans.
void engine::replied(const arrival& at, const reply* got) {
    const command_kind kind = at.command.kind;
    if (kind == command_kind::get || kind == command_kind::pttl) {
        holder_told(acquires_.find(at.command.subject.to<acquire_call>()), at, got);
    } else if (kind == command_kind::take_ticket || kind == command_kind::leave_queue) {
        ticket_answered(at, got);
    } else {
        scan_answered(at, got);
    }
}

// --- What claims decide

void engine::answered(claim& owner, const told& from, const answer& got) {
    if (wrong::older_grant_counted && from.kind == command_kind::acquire && owner.ended()) {
        count_for_newer(owner, from, got);
        return;
    }
    const steps what = owner.answered(from, got, at(from.now));
    if (has(what, steps::counted)) {
        ++(masters_.counters(from.master).*counts_of(from.kind))[got.said];
        if (wrong::set_then_pexpire && owner.is_asking() && got.said == vote::granted) {
            const std::string ttl = std::to_string(owner.ttl().count());
            wire_.send(
                from.master, {"PEXPIRE", owner.key(), ttl}, {.kind = command_kind::ping}, from.now);
        }
    }
    if (what == steps::counted) {
        return;
    }
    if (from.kind == command_kind::remove) {
        removal_answered(owner, from.master, what, from.now);
    } else {
        decided(owner, what, from.now);
    }
}

// A command that has to be sent in another variant.
void engine::again(claim& owner, const told& from, bool alone) {
    const command_kind kind = from.kind;
    const bool grants = kind != command_kind::raise && kind != command_kind::remove;
    if (grants && !masters_.takes(from.master, owner.ttl_of(kind))) {
        answered(owner, from, {.said = vote::error}); // the limit was lowered since
        return;
    }
    if (!owner.may_send(kind, from.epoch, from.now)) {
        return;
    }
    if (kind == command_kind::remove) {
        closing_moved(from.now); // it continues in another variant
    } else if (kind == command_kind::heal && owner.is_held()) {
        owner.heals_on(from.master, rules_.drift);
    }
    wire_.repeat(owner, kind, from.master, alone, from.now);
}

// Where the decisions of a claim become actions, but for those of its removal (releases.cpp).
void engine::decided(claim& one, steps what, time_point now) {
    if (has(what, steps::ask_others)) {
        what = ask_others(one, now);
    }
    if (has(what, steps::mend)) {
        const master_set where = rules_.guarded()
                                     ? masters_.healing(one.ttl_of(command_kind::heal), now)
                                     : master_set{0};
        what |= one.mend(where, at(now));
    }
    if (has(what, steps::heal)) {
        for (const std::size_t i : each_of(one.to())) {
            wire_.send_alone(one, command_kind::heal, i, now);
        }
    }
    if (has(what, steps::raise)) {
        raise(one, has(what, steps::anew), now);
    }
    if (has(what, steps::won | steps::failed)) {
        if (acquire_call* const wanted = acquires_.find(one.wanted_by)) {
            has(what, steps::won) ? win(*wanted, one, now) : fail(*wanted, one, one.why(), now);
        }
        return;
    }
    if (has(what, steps::deadline)) {
        host_.lease_changed(one);
    }
    if (has(what, steps::stop)) {
        lose(one, now);
        return;
    }
    if (has(what, steps::warn)) {
        host_.held_long(one);
    }
    if (has(what, steps::renew)) {
        what |=
            start_extension(one, one.ttl(), false, now) ? steps::later : one.give_up_round(at(now));
    }
    if (has(what, steps::round_over)) {
        report_round(one);
        start_wanted(one, now);
    }
    if (has(what, steps::later)) {
        timers_.set(one.wake, one.next_due(now));
    }
}

// --- Reports

metrics engine::count() const {
    metrics out = counters_;
    out.waiting = acquires_.size();
    claims_.for_each([&](const claim& one) {
        out.held += one.is_held() ? 1U : 0U;
        if (one.is_ending()) {
            out.pending_removals += one.overdue();
        }
    });
    for (std::size_t i = 0; i < size(); ++i) {
        const master& one = masters_[i];
        out.release_notifications += one.pushes->messages();
        out.notification_connections += one.notifies() ? 1U : 0U;
        out.subscriptions = std::max(out.subscriptions, one.pushes->watched());
        out.masters.emplace_back(one.link->counters()).endpoint = rules_.names[i];
    }
    return out;
}

health engine::examine(time_point now) const {
    health out;
    out.ready = running() && ready();
    out.admitted = masters_.admitted();
    out.quorum = majority();
    out.max_ttl = ttl_limit();
    out.quarantine_time = std::chrono::ceil<std::chrono::milliseconds>(masters_.quarantine_time());
    for (std::size_t i = 0; i < size(); ++i) {
        out.masters.push_back(masters_.health_of(i, now));
    }
    out.members = masters_.members().members;
    out.generation = masters_.members().number;
    out.change = masters_.change_text(now);
    return out;
}

} // namespace redlock::core
