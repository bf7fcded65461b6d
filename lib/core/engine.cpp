#include "engine.hpp"

#include "decisions.hpp"
#include "keys.hpp"
#include "report.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace redlock::core {

namespace {

std::uint64_t seed_from(engine_callbacks& outside) {
    std::array<unsigned char, sizeof(std::uint64_t)> bytes{};
    outside.random(bytes);
    std::uint64_t seed = 0;
    std::memcpy(&seed, bytes.data(), sizeof seed);
    return seed;
}

} // namespace

engine::engine(settings rules, engine_callbacks& outside)
    : rules_(std::move(rules)),
      host_(outside),
      random_(seed_from(outside)),
      masters_(rules_, *this, *this, random_),
      sender_(rules_, masters_, claims_, listeners_),
      replies_(rules_, masters_, sender_, claims_, listeners_, *this),
      queries_(rules_, masters_, sender_, timers_, host_),
      scans_(rules_, masters_, sender_, timers_, host_),
      leases_(rules_, masters_, sender_, timers_, random_, counters_, host_, host_),
      removals_(rules_, masters_, sender_, timers_, claims_, counters_, host_),
      attempts_(rules_, masters_, sender_, timers_, claims_, counters_, host_),
      waiting_(rules_, masters_, sender_, timers_, claims_, random_, host_),
      acquires_(
          rules_,
          masters_,
          timers_,
          claims_,
          random_,
          counters_,
          attempts_,
          waiting_,
          scans_,
          leases_,
          removals_,
          host_,
          host_) {}

engine::~engine() = default;

void engine::start(time_point now) {
    assert(life_ == life::created);
    life_ = life::running;
    masters_.start(now);
}

void engine::close(time_point now) {
    if (closing()) {
        return;
    }
    const bool ran = life_ == life::running;
    life_ = life::closing;
    close_by_ = ran ? later(now, rules_.master_timeout) : now;
    acquires_.close(now);
    claims_.for_each([&](claim& lease) {
        if (lease.is_held()) {
            lose(lease, loss_reason::closed, now);
        }
    });
    queries_.end_all();
    scans_.end_all(); // only status queries are left
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
    close_by_ = forever;
    removals_.stop();
    masters_.stop("the manager was closed", now);
    claims_.for_each([&](claim& ended) {
        if (ended.acts() || (ended.is_ending() && ended.ending().wanted())) {
            host_.removed(ended, release_result::uncertain);
        }
        timers_.cancel(ended.wake);
        claims_.destroy(ended);
    });
    host_.closed();
}

void engine::opened(std::size_t link, time_point now) {
    masters_.opened(link, now);
    sender_.write_soon();
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
    // The connection may have queued commands of its own, such as a handshake.
    if (!masters_.output(link).empty()) {
        sender_.write_soon();
    }
    end_of_event(now);
}

void engine::written(std::size_t link, std::size_t bytes, time_point now) {
    if (link < size()) {
        masters_[link].link->written(bytes);
        end_of_event(now);
    }
}

void engine::end_of_event(time_point now) {
    if (acquires_.finishing()) {
        acquires_.end_finished(now);
    }
    finish_closing(now);
}

time_point engine::next_due() const noexcept {
    return std::min({timers_.next(), masters_.next_due(), removals_.next_due(), close_by_});
}

void engine::time_passed(time_point now) {
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        voters_changed(masters_.time_passed(i, now), now);
    }
    notifications_changed(now);
    const std::size_t stepped = masters_.judge_steps(now);
    if (stepped > 1 && host_.logs(log_level::warning)) {
        host_.log(
            log_level::warning,
            "the clocks of " + std::to_string(stepped)
                + " masters seem to have been stepped at once: taken for a step of this machine's "
                  "clock");
    }
    // The rest stays due: `next_due` reports it, and other work of the event loop runs in between.
    for (std::size_t i = 0; i < rules_.turn_max; ++i) {
        timer* const due = timers_.pop(now);
        if (due == nullptr) {
            break;
        }
        fire(*due, now);
    }
    removals_.time_passed(now);
    end_of_event(now);
    masters_.refresh_due();
    sender_.write_soon(); // PING, INFO
}

void engine::fire(const timer& due, time_point now) {
    switch (due.owner) {
    case timer_owner::operation:
        acquires_.due(due.subject, now);
        break;
    case timer_owner::query:
        queries_.due(due.subject);
        break;
    case timer_owner::slot_scan:
        scans_.due(due.subject);
        break;
    case timer_owner::claim:
        if (claim* const owner = claims_.find(due.subject)) {
            if (owner->is_held()) {
                lose_if(*owner, leases_.due(*owner, now), now);
            } else if (owner->is_lost()) {
                end_lost(*owner, now);
            } else if (owner->is_ending()) {
                removals_.due(*owner, now);
            }
        }
        break;
    }
}

void engine::replied(
    std::size_t master,
    const sent_command& command,
    const reply& got,
    time_point sent,
    time_point now) {
    if (got.is_error()) {
        replies_.notice(master, got.text, now);
    }
    const arrival at{master, command, sent, now};
    switch (command.kind) {
    case command_kind::get:
    case command_kind::pttl:
        queries_.answered(master, command, got);
        break;
    case command_kind::lease_left:
        waiting_.lease_left(acquires_.find(command.subject), at, got);
        break;
    case command_kind::scan_slots:
        if (slot_scan* const found = scans_.answered(master, command, &got)) {
            acquires_.slots_found(*found, now);
        }
        break;
    case command_kind::take_turn:
    case command_kind::leave_queue:
        acquires_.go_on(waiting_.turn_answered(at, got), now);
        break;
    default:
        replies_.replied(at, got);
        break;
    }
}

void engine::dropped(std::size_t master, const sent_command& command, time_point now) {
    const arrival at{.master = master, .command = command, .now = now};
    switch (command.kind) {
    case command_kind::get:
    case command_kind::pttl:
        queries_.dropped(master, command);
        break;
    case command_kind::lease_left:
        break; // the waiter tries again all the same
    case command_kind::scan_slots:
        if (slot_scan* const found = scans_.answered(master, command, nullptr)) {
            acquires_.slots_found(*found, now);
        }
        break;
    case command_kind::take_turn:
    case command_kind::leave_queue:
        acquires_.go_on(waiting_.turn_dropped(at), now);
        break;
    default:
        replies_.dropped(at);
        break;
    }
}

void engine::release(handle name, time_point now) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->acts()) {
        return; // its removal has started
    }
    if (lease->is_lost()) {
        closing_moved(now);
        end_lost(*lease, now);
        finish_closing(now);
        return;
    }
    leases_.end(*lease, errc::released, now);
    const bool late = now >= lease->held().held_until(); // and the timer has not fired yet
    if (wrong::old_holder_releases) {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if (masters_[i].link->up()) {
                std::string bytes;
                append_remove(
                    bytes,
                    command_variant::eval,
                    native_delete::none,
                    lease->key,
                    lease->token_text(),
                    {});
                sender_.send(i, bytes, {.kind = command_kind::ping, .subject = {}}, now);
            }
        }
    }
    if (late || !acquires_.hand_off(*lease, now)) {
        wrong::own_queue_not_notified ? void() : waiting_.ended(*lease, now);
        removals_.begin(*lease, now);
    }
    finish_closing(now);
}

bool engine::abandon(handle name) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->acts()) {
        return false;
    }
    lost_ -= lease->is_lost() ? 1U : 0U;
    if (lease->is_held()) {
        leases_.end_extensions(*lease, errc::released);
    }
    timers_.cancel(lease->wake);
    wait_queue* const mine = waiting_.find(*lease);
    claims_.destroy(*lease);
    if (mine != nullptr) {
        waiting_.end_if_unused(*mine);
    }
    if (life_ == life::closing && !waits_to_close()) {
        close_by_ = never; // the next event ends the closing
    }
    return true;
}

void engine::extend(handle name, std::chrono::milliseconds ttl, time_point now) {
    claim* const lease = claims_.find(name);
    if (lease != nullptr && lease->is_held()) { // else its end has been reported
        leases_.extend(*lease, ttl, now);
    }
}

void engine::lose(claim& lease, loss_reason reason, time_point now) {
    leases_.lose(lease, reason, now);
    ++lost_;
    if (wrong::removed_at_stop || now >= lease.believed_until) {
        end_lost(lease, now);
        return;
    }
    waiting_.lost(lease);
    timers_.set(lease.wake, lease.believed_until);
}

// The holder of a lost lease has ended it, or must have stopped.
void engine::end_lost(claim& lease, time_point now) {
    --lost_;
    wrong::own_queue_not_notified ? void() : waiting_.ended(lease, now);
    removals_.begin(lease, now);
}

void engine::again(claim& owner, const arrival& at, const answer& got) {
    const auto& [master, command, sent, now] = at;
    if (command.kind == command_kind::remove) {
        closing_moved(now); // it continues in another variant
    }
    if (got.ask_exists) {
        const command_kind kind = command.kind == command_kind::remove
                                      ? command_kind::remove_exists
                                      : command_kind::extend_exists;
        sender_.send(
            master,
            {"EXISTS", owner.key},
            {.kind = kind, .round = command.round, .subject = owner.self},
            now);
        return;
    }
    if (command.kind == command_kind::remove) {
        removals_.again(owner, at, got.for_one);
        return;
    }
    const bool asks = command.kind == command_kind::acquire || command.kind == command_kind::raise;
    if (asks || (owner.is_asking() && owner.asking().attaches())) {
        attempts_.again(owner, at, got.for_one);
    } else {
        leases_.again(owner, at, got.for_one);
    }
}

void engine::answered(claim& owner, const arrival& at, const answer& got) {
    switch (at.command.kind) {
    case command_kind::acquire:
        if (wrong::older_grant_counted && owner.ended()) {
            const wait_queue* const mine = waiting_.find(owner);
            const operation* const newer = mine != nullptr ? waiting::front_of(*mine) : nullptr;
            claim* const attempt = newer != nullptr ? claims_.find(newer->attempt) : nullptr;
            if (attempt != nullptr && attempt->is_asking()) {
                sent_command command = at.command;
                command.round = attempt->handoffs;
                acquires_.answered(*attempt, {at.master, command, at.sent, at.now}, got);
            }
        } else if (owner.is_held()) {
            lose_if(owner, leases_.granted_late(owner, at, got), at.now);
        } else {
            acquires_.answered(owner, at, got);
        }
        break;
    case command_kind::raise:
        if (owner.is_held()) {
            lose_if(owner, leases_.raised_late(owner, at, got), at.now);
        } else {
            acquires_.answered(owner, at, got);
        }
        break;
    case command_kind::remove:
    case command_kind::remove_exists:
        if (removals_.answered(owner, at, got.said)) {
            closing_moved(at.now);
        }
        break;
    case command_kind::extend:
    case command_kind::extend_exists:
    case command_kind::heal:
        if (owner.is_asking() && owner.asking().attaches()) {
            acquires_.answered(owner, at, got);
        } else {
            lose_if(owner, leases_.answered(owner, at, got), at.now);
        }
        break;
    default:
        break;
    }
}

void engine::query_slots(
    std::uint64_t cookie, std::string_view pool, std::uint32_t slots, time_point now) {
    std::string key;
    assign_pool_key(key, rules_.key_prefix, pool);
    scans_.ask(cookie, key, slots, now);
}

std::vector<master_vote> engine::describe(const ballots& votes, time_point now) const {
    return core::describe(votes, rules_, masters_, now);
}

metrics engine::count() const {
    metrics out = core::count(counters_, claims_, rules_, masters_);
    out.waiting = acquires_.size();
    return out;
}

health engine::examine(time_point now) const {
    return core::examine(rules_, masters_, running(), now);
}

void engine::open(std::size_t master) {
    host_.open(master);
}

void engine::close(std::size_t master) {
    host_.close(master);
}

void engine::noted(std::size_t master, std::string_view text) {
    if (host_.logs(log_level::info)) {
        host_.log(log_level::info, rules_.names[master] + ": " + std::string(text));
    }
}

void engine::clock_stepped(std::size_t master, std::chrono::microseconds by, time_point now) {
    if (wrong::step_ends_quarantine || !masters_.clock_stepped(master, now)) {
        return;
    }
    sender_.write_soon();
    if (host_.logs(log_level::warning)) {
        const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(by);
        host_.log(
            log_level::warning,
            rules_.names[master] + ": its clock was stepped by " + std::to_string(ms.count())
                + " ms, or this machine's was");
    }
}

void engine::admission_changed(std::size_t master, time_point now) {
    voters_changed(masters_.admission_changed(master, now), now);
    sender_.write_soon(); // handshakes that the record of this master has made useful
    removals_.connection_changed(master, now);
    if (!masters_[master].link->up()) {
        replies_.drop_unsent(master, now);
    }
}

// An attempt ends: a grant of this generation and one of the last are not votes for the same lock.
// A lease keeps its deadline, and its next extension is counted by the present members.
void engine::members_changed(time_point now) {
    std::vector<handle> rounds;
    claims_.for_each([&](claim& one) {
        if (one.is_held()) {
            leases_.members_changed(one);
        }
        const bool extends = !wrong::earlier_votes_count && one.is_held() && one.extending.active;
        if (one.is_asking() || extends) {
            rounds.push_back(one.self);
        }
    });
    for (const handle name : rounds) {
        claim* const one = claims_.find(name);
        if (one == nullptr) {
            continue;
        }
        if (one->is_asking()) {
            acquires_.break_off(*one, now);
        } else if (one->is_held() && one->extending.active) {
            leases_.break_off(*one, now);
        }
    }
    const generation& present = masters_.members();
    host_.members_changed(present);
    if (host_.logs(log_level::info)) {
        host_.log(
            log_level::info,
            "members of the quorum, generation " + std::to_string(present.number) + ": "
                + shown(present.members));
    }
}

void engine::voters_changed(const admission_change& change, time_point now) {
    if (change.members) {
        members_changed(now);
    }
    if (change.masters != 0) {
        listeners_.forget(); // their arbiters may be other masters
    }
    for (std::size_t i = 0; change.masters != 0 && i < masters_.size(); ++i) {
        const member& one = masters_[i];
        if ((change.masters & set_of(i)) == 0 || !one.link->up()) {
            continue;
        }
        if (!wrong::sent_in_quarantine && !one.admitted) {
            replies_.drop_unsent(i, now);
        }
        const bool fault = one.otherwise == vote::duplicate || one.otherwise == vote::error;
        const log_level level = fault ? log_level::warning : log_level::info;
        if (host_.logs(level)) {
            host_.log(
                level,
                rules_.names[i] + (one.admitted ? ": admitted" : ": does not vote: ")
                    + masters_.why_not(i, now));
        }
    }
    if (change.ready) {
        acquires_.outage_over(now);
    }
}

void engine::open_subscriber(std::size_t master) {
    host_.open(size() + master);
}

void engine::close_subscriber(std::size_t master) {
    host_.close(size() + master);
}

void engine::listen(std::string_view resource, time_point now) {
    std::string key;
    assign_lock_key(key, rules_.key_prefix, resource);
    if (waiting_.releases().listen(key) && rules_.pushes && running()) {
        waiting_.releases().subscribe(key, now);
        sender_.write_soon();
    }
}

void engine::unlisten(std::string_view resource, time_point now) {
    std::string key;
    assign_lock_key(key, rules_.key_prefix, resource);
    if (waiting_.releases().unlisten(key, now)) {
        sender_.write_soon();
    }
}

void engine::publish_refused(std::size_t master, time_point now) {
    if (host_.logs(log_level::warning)) {
        host_.log(
            log_level::warning,
            rules_.names[master]
                + ": PUBLISH is refused, so releases notify no waiter and waiters poll: "
                + masters_[master].link->unpublished()
                + "; the ACL must allow +publish and the channels &" + rules_.key_prefix + "*");
    }
    notifications_changed(now);
}

void engine::notifications_changed(time_point now) {
    if (masters_.lost_notifications()) {
        acquires_.poll_soon(now);
    }
}

// `release` was announced by a master; if it is empty, a release may have been missed.
void engine::release_notified(
    std::size_t master, std::string_view channel, std::string_view release, time_point now) {
    const std::string_view lock_key = lock_of_channel(channel);
    if (waiting_.releases().has_listener(lock_key)) {
        host_.heard(lock_key);
    }
    acquires_.notified(lock_key, master, release, now);
}

void engine::cancel(handle acquire, time_point now) {
    acquires_.cancel(acquire, now);
    finish_closing(now);
}

bool engine::writes(handle name) const {
    const claim* const lease = claims_.find(name);
    return lease != nullptr && lease->is_held() && lease->form == lock_form::writer;
}

// From now on the lease counts as a reader's, whatever the masters reply. Each master converts the
// key at the next extension, of which the first is sent now. Until then the writer's key counts as
// the reader's vote, because it also excludes other writers.
void engine::downgrade(handle name, time_point now) {
    if (!writes(name)) {
        return; // its end has been reported
    }
    claim& lease = *claims_.find(name);
    waiting_.downgraded(lease, now);
    lease.form = lock_form::shared;
    leases_.extend(lease, lease.ttl, now);
}

} // namespace redlock::core
