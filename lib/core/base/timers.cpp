#include "timers.hpp"

namespace redlock::core {

void timers::set(timer& entry, time_point due) {
    cancel(entry);
    active_ += due != forever ? 1U : 0U;
    entry.due = due;
    if (entry.place == timer::idle) {
        if (due != forever) {
            heap_.emplace_back();
            up(heap_.size() - 1, {due, &entry});
        }
    } else if (due < heap_[entry.place].looked_at) {
        up(entry.place, {due, &entry});
    }
}

void timers::cancel(timer& entry) noexcept {
    active_ -= entry.place != timer::idle && entry.due != forever ? 1U : 0U;
    entry.due = forever;
}

void timers::remove(timer& entry) noexcept {
    cancel(entry);
    if (entry.place == timer::idle) {
        return;
    }
    const std::size_t at = entry.place;
    entry.place = timer::idle;
    const place last = heap_.back();
    heap_.pop_back();
    if (at < heap_.size()) {
        last.looked_at < heap_[at].looked_at ? up(at, last) : down(at, last);
    }
    if (heap_.capacity() > spare_max && heap_.size() < heap_.capacity() / 4) {
        heap_.shrink_to_fit(); // after there were very many
    }
}

timer* timers::pop(time_point now) noexcept {
    if (heap_.empty() || heap_.front().looked_at > now) {
        return nullptr;
    }
    timer& first = *heap_.front().entry;
    if (first.due != heap_.front().looked_at && first.due != forever) {
        down(0, {first.due, &first});
        return nullptr;
    }
    const time_point due = first.due;
    remove(first);
    first.due = due;
    return due != forever ? &first : nullptr;
}

void timers::put(std::size_t at, const place& what) noexcept {
    heap_[at] = what;
    what.entry->place = static_cast<std::uint32_t>(at) & timer::idle;
}

// Puts it at `at` or, if it is looked at earlier than those above, higher.
void timers::up(std::size_t at, const place& what) noexcept {
    while (at > 0) {
        const std::size_t parent = (at - 1) / 2;
        if (heap_[parent].looked_at <= what.looked_at) {
            break;
        }
        put(at, heap_[parent]);
        at = parent;
    }
    put(at, what);
}

// Puts it at `at` or, if it is looked at later than those below, lower.
void timers::down(std::size_t at, const place& what) noexcept {
    for (;;) {
        std::size_t child = 2 * at + 1;
        if (child >= heap_.size()) {
            break;
        }
        if (child + 1 < heap_.size() && heap_[child + 1].looked_at < heap_[child].looked_at) {
            ++child;
        }
        if (what.looked_at <= heap_[child].looked_at) {
            break;
        }
        put(at, heap_[child]);
        at = child;
    }
    put(at, what);
}

} // namespace redlock::core
