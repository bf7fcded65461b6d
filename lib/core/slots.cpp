// The slots of a pool: finds free ones, and lets an acquire try some of them; or reports their
// owners. One command to each master for 512 slots, all in one round trip.
//
// A waiter for a slot is in the wait queue of its pool. Only its front differs: it searches first,
// and then makes attempts on slots that were free. The release of any slot is published on the
// channel of the pool.

#include "engine.hpp"
#include "keys.hpp"

#include <algorithm>
#include <memory>

namespace redlock::core {

slot_scan& engine::new_scan(
    std::string_view pool_key, std::uint32_t slots, std::uint32_t wanted, bool with_owners) {
    slot_scan& made = scans_.create();
    made.wake.owner = timer_owner::slot_scan;
    made.wake.subject = made.self;
    made.key = pool_key;
    made.begin(masters_.size(), masters_.needed(), slots, wanted, with_owners);
    return made;
}

void engine::ask_for_slots(slot_scan& asking, time_point now) {
    sender_.flush(); // a slot may be free after the removals of this turn
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        // The status of a pool includes masters that may not vote.
        const connection& link = *masters_[i].link;
        const bool answers = asking.wants_owners()
                                 ? link.up() && !link.silent() && !masters_[i].duplicate
                                 : masters_[i].admitted;
        if (!answers || link.overloaded()) {
            asking.votes.of[i].said = answers ? vote::unreachable : masters_[i].otherwise;
            continue;
        }
        asking.found.asked(i, asking.commands());
        for (unsigned command = 0; command < asking.commands(); ++command) {
            send_scan(asking, i, command, now);
        }
    }
}

void engine::send_scan(
    const slot_scan& asking, std::size_t master, unsigned command, time_point now) {
    const std::uint32_t first = slot_scan::first_of(command);
    const std::uint32_t count = asking.count_of(command);
    // Only the guarded protocol uses a script: plain also works where scripts are forbidden.
    const bool owners = asking.wants_owners() || !rules_.guarded();
    std::string bytes;
    if (owners) {
        append_owners(bytes, asking.key, first, count);
    } else {
        append_slot_scan(bytes, asking.key, first, count);
    }
    sender_.send(
        master,
        bytes,
        {.kind = command_kind::scan_slots,
         .how = owners ? command_variant::native : command_variant::eval,
         .round = static_cast<std::uint16_t>(command),
         .subject = asking.self},
        now);
}

void engine::scan_answered(
    std::size_t master, const sent_command& command, const reply* answer, time_point now) {
    slot_scan* const asking = scans_.find(command.subject);
    if (asking == nullptr) {
        return; // the search has continued without this scan
    }
    if (answer == nullptr) {
        asking->dropped(master, masters_[master].link->why_down());
    } else {
        const bool native = command.how == command_variant::native;
        asking->answered(master, command.round, native, *answer, rules_.max_ttl);
    }
    if (asking->decided()) {
        scan_over(*asking, now);
    }
}

void engine::scan_over(slot_scan& done, time_point now) {
    operation* const wanted = operations_.find(done.operation);
    if (wanted != nullptr) {
        slots_found(*wanted, done, now);
    } else {
        status_found(done);
    }
}

// --- For an acquire ------------------------------------------------------------------------------

// The target of the next attempt: one slot, or several as one lock.
void engine::name_slots(claim& attempt, operation& wanted) {
    attempt.slots = std::make_unique<slot_part>();
    std::vector<std::uint32_t>& numbers = attempt.slots->numbers;
    wanted.search->next(numbers);
    attempt.slots->pool_key = wanted.key;
    if (numbers.size() == 1) {
        assign_slot_key(attempt.key, wanted.key, numbers[0]);
        return;
    }
    attempt.form = lock_form::all;
    attempt.key.clear();
    std::string key;
    std::string fence;
    for (const std::uint32_t number : numbers) {
        assign_slot_key(key, wanted.key, number);
        assign_slot_fence_key(fence, key);
        pack(attempt.key, key);
        pack(attempt.key, fence);
    }
}

void engine::start_scan(operation& wanted, time_point now) {
    slot_scan& asking = new_scan(wanted.key, wanted.slots, wanted.wants, false);
    asking.operation = wanted.self;
    wanted.stage = operation::phase::scanning;
    wanted.search->scan = asking.self;
    if (wanted.queue != nullptr) {
        wanted.queue->asked_all(now);
    }
    if (!masters_.ready()) {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            asking.votes.of[i].said = masters_[i].admitted ? vote::pending : masters_[i].otherwise;
        }
        slots_found(wanted, asking, now); // nothing was sent
        return;
    }
    ask_for_slots(asking, now);
    if (asking.found.over()) {
        slots_found(wanted, asking, now);
    } else {
        const time_point impatient = wanted.wait_until > wanted.began ? wanted.wait_until : forever;
        timers_.set(wanted.wake, std::min(later(now, rules_.master_timeout), impatient));
    }
}

void engine::end_scan(operation& wanted) {
    slot_scan* const asking = wanted.search ? scans_.find(wanted.search->scan) : nullptr;
    if (asking != nullptr) {
        timers_.cancel(asking->wake);
        scans_.destroy(*asking);
    }
}

// Ends a scan: starts an attempt on a free slot, or ends this search.
void engine::slots_found(operation& wanted, slot_scan& asking, time_point now) {
    const slot_tally& found = asking.found;
    if (wanted.search->scanned(found, random_)) {
        end_scan(wanted);
        start_attempt(wanted, now);
        return;
    }
    wanted.outcome = found.complete() >= masters_.needed() ? errc::contended : errc::no_quorum;
    if (masters_.ready()) {
        asking.explain();
    }
    std::swap(wanted.last, asking.votes);
    wanted.decided_at = now;
    end_scan(wanted);
    wait_for_slot(wanted, now);
}

// No slot to try.
void engine::wait_for_slot(operation& wanted, time_point now) {
    wait_queue* const mine = wanted.queue;
    if (mine == nullptr || closing() || now >= wanted.wait_until) {
        finish(wanted, now);
        return;
    }
    mine->found(wanted.outcome, wanted.last);
    wanted.search->stop();
    if (wanted.outcome == errc::contended) {
        if (mine->take_notified()) {
            start_attempt(wanted, now);
            return;
        }
        watch(*mine, now);
    }
    pause(wanted, mine->no_slot(view_of(*mine, now), random_), now);
}

// The front got a slot, and the next waiter becomes the front. After a local handoff all slots are
// held, so it waits until the planned search. Otherwise it continues with the other free slots of
// the last scan.
void engine::look_on(wait_queue& waiters, operation& served, const claim& won, time_point now) {
    operation& next = *front_of(waiters);
    if (won.slots->handed_since != never && !waiters.take_notified()) {
        pause(next, waiters.search_at(), now);
        return;
    }
    pause(next, now, now);
    if (next.search) {
        next.search->take_over(*served.search);
    }
}

// An attempt on one slot has failed: tries another if this search has one left. Returns false if it
// has ended.
bool engine::try_next_slot(operation& wanted, claim& attempt, time_point now) {
    if (wanted.outcome != errc::contended || !wanted.search->refused() || closing()
        || (wanted.wait_until > wanted.began
            && wanted.wait_until <= later(now, 2 * retry_floor()))) {
        return false;
    }
    attempt.announced = attempt.announced || attempt.votes.may_be_set();
    begin_removal(attempt, now);
    // Another client tries the same slots: from now on the arbiter is asked first, and decides
    // between the two.
    wanted.ask_arbiter = true;
    start_attempt(wanted, now);
    return true;
}

// --- For the status of a pool --------------------------------------------------------------------

void engine::query_slots(
    std::uint64_t cookie, std::string_view pool, std::uint32_t slots, time_point now) {
    std::string key;
    assign_pool_key(key, rules_.key_prefix, pool);
    slot_scan& asking = new_scan(key, slots, slots, true);
    asking.cookie = cookie;
    ask_for_slots(asking, now);
    if (asking.found.over()) {
        status_found(asking);
    } else {
        timers_.set(asking.wake, later(now, rules_.master_timeout));
    }
}

void engine::status_found(slot_scan& done) {
    timers_.cancel(done.wake);
    host_.slots_told(done.cookie, done.status(masters_.needed()));
    scans_.destroy(done);
}

} // namespace redlock::core
