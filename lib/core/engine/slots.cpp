// The slots of a pool: lets an acquire try some of those that are free.
//
// A waiter for a slot is in the wait queue of its pool. Only its front differs: it searches first,
// and then makes attempts on slots that were free. The release of any slot is published on the
// channel of the pool.
//
// A scan sends one command to each master for 512 slots, all in one round trip.

#include "core/bytes/keys.hpp"
#include "engine.hpp"

#include <algorithm>

namespace redlock::core {

void engine::start_scan(acquire_call& wanted, time_point now) {
    wanted.stage = acquire_call::phase::scanning;
    if (wanted.queue != nullptr) {
        wanted.queue->polls.asked_all(now);
    }
    const slot_search& search = *wanted.search;
    slot_scan& asking = scans_.create();
    asking.key = wanted.key;
    asking.begin(size(), majority(), search.slots(), search.wants());
    asking.asked_by = wanted.self;
    wanted.search->scan = asking.self;
    if (masters_.ready()) {
        ask_masters(asking, now);
    } else {
        for (std::size_t i = 0; i < size(); ++i) {
            asking.not_asked(i, masters_[i].admitted ? vote::pending : masters_[i].otherwise);
        }
    }
    if (asking.over()) { // nothing was sent
        slots_found(wanted, asking, now);
    } else {
        const time_point impatient = wanted.wait_until > wanted.began ? wanted.wait_until : forever;
        timers_.set(wanted.wake, std::min(later(now, rules_.master_timeout), impatient));
    }
}

void engine::end_scan(acquire_call& wanted) {
    slot_scan* const asking = wanted.search ? scans_.find(wanted.search->scan) : nullptr;
    if (asking != nullptr) {
        scans_.destroy(*asking);
    }
}

// Ends a scan: starts an attempt on a free slot, or ends this search.
void engine::slots_found(acquire_call& wanted, slot_scan& asking, time_point now) {
    if (wanted.search->scanned(asking, random_)) {
        end_scan(wanted);
        try_it(wanted, now);
        return;
    }
    wanted.outcome = asking.complete() >= masters_.majority() ? errc::contended : errc::no_quorum;
    if (masters_.ready()) {
        asking.explain();
    }
    std::swap(wanted.last, asking.votes);
    end_scan(wanted);
    if (wanted.queue == nullptr || closing() || now >= wanted.wait_until) {
        finish(wanted, now);
    } else {
        act(wanted, no_slot(wanted, now), now);
    }
}

// A search found no slot: the next step is to search again, or it pauses.
next_step engine::no_slot(acquire_call& front, time_point now) {
    wait_queue& mine = *front.queue;
    mine.found(front.outcome, front.last);
    front.search->stop();
    if (front.outcome == errc::contended) {
        if (mine.take_notified()) {
            return next_step::ask;
        }
        watch(mine, now);
    }
    pause(front, mine.no_slot(view_of(mine, now)), now);
    return next_step::wait;
}

// The front got a slot, and the next waiter becomes the front. After a local handoff all slots are
// held, so it waits until the planned search. Otherwise it continues with the other free slots of
// the last scan.
void engine::look_on(wait_queue& waiters, acquire_call& served, const claim& won, time_point now) {
    acquire_call& next = *waiters.front();
    if (won.handed_since() != never && !waiters.take_notified()) {
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
bool engine::try_next_slot(acquire_call& wanted, claim& attempt, time_point now) {
    if (wanted.outcome != errc::contended || !wanted.search->refused() || closing()
        || (wanted.wait_until > wanted.began
            && wanted.wait_until <= later(now, 2 * masters_.retry_floor()))) {
        return false;
    }
    roll_back(wanted, attempt, false, now);
    // Another client tries the same slots: from now on the arbiter is asked first, and decides
    // between the two.
    wanted.ask_arbiter = true;
    try_it(wanted, now);
    return true;
}

// --- Scans

void engine::ask_masters(slot_scan& asking, time_point now) {
    wire_.flush(); // a slot may be free after the removals of this turn
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if (!masters_[i].admitted || masters_[i].link->overloaded()) {
            asking.not_asked(i, masters_[i].admitted ? vote::unreachable : masters_[i].otherwise);
            continue;
        }
        asking.asked(i);
        for (unsigned command = 0; command < asking.commands(); ++command) {
            send_scan(asking, i, command, now);
        }
    }
}

void engine::send_scan(
    const slot_scan& asking, std::size_t master, unsigned command, time_point now) {
    // Only the guarded protocol uses a script: plain also works where scripts are forbidden. It is
    // rare, and sent whole: no command variant needs to be remembered.
    const std::uint32_t count = asking.count_of(command);
    const decimal number(count);
    std::vector<std::string_view> words{"MGET"};
    if (rules_.guarded()) {
        words = {"EVAL", scan_slots, number};
    }
    const auto keys = slot_keys(asking.key, slot_scan::first_of(command), count);
    words.insert(words.end(), keys.begin(), keys.end());
    std::string bytes;
    append_command(bytes, words);
    masters_.send(
        master,
        bytes,
        {.kind = command_kind::scan_slots,
         .epoch = static_cast<std::uint16_t>(command),
         .to = this,
         .subject = asking.self},
        now);
}

void engine::scan_answered(const arrival& at, const reply* answer) {
    slot_scan* const asking = scans_.find(at.command.subject.to<slot_scan>());
    if (asking == nullptr) {
        return; // the search has continued without this scan
    }
    if (answer == nullptr) {
        asking->failed(at.master, vote::unreachable, masters_[at.master].link->why_down());
    } else {
        asking->answered(at.master, at.command.epoch, *answer, masters_.longest_ttl());
    }
    acquire_call* const wanted = acquires_.find(asking->asked_by);
    if (asking->decided() && wanted != nullptr) {
        slots_found(*wanted, *asking, at.now);
    }
}

} // namespace redlock::core
