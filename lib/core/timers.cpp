#include "timers.hpp"

namespace redlock::core {

void timers::set(timer& entry, time_point due) {
    if (entry.due == due && entry.place != timer::idle) {
        return;
    }
    if (due == forever) {
        cancel(entry);
        return;
    }
    const bool sooner = entry.place == timer::idle || due < entry.due;
    entry.due = due;
    if (entry.place == timer::idle) {
        heap_.push_back(&entry);
        entry.place = static_cast<std::uint32_t>(heap_.size() - 1) & timer::idle;
    }
    sooner ? up(entry.place) : down(entry.place);
}

void timers::cancel(timer& entry) noexcept {
    const std::size_t place = entry.place;
    if (place == timer::idle) {
        return;
    }
    entry.place = timer::idle;
    timer* const last = heap_.back();
    heap_.pop_back();
    if (last != &entry) {
        put(place, last);
        up(place);
        down(last->place);
    }
}

timer* timers::pop(time_point now) noexcept {
    if (heap_.empty() || heap_.front()->due > now) {
        return nullptr;
    }
    timer* const first = heap_.front();
    cancel(*first);
    return first;
}

void timers::put(std::size_t place, timer* entry) noexcept {
    heap_[place] = entry;
    entry->place = static_cast<std::uint32_t>(place) & timer::idle;
}

void timers::up(std::size_t place) noexcept {
    timer* const entry = heap_[place];
    while (place > 0) {
        const std::size_t parent = (place - 1) / 2;
        if (heap_[parent]->due <= entry->due) {
            break;
        }
        put(place, heap_[parent]);
        place = parent;
    }
    put(place, entry);
}

void timers::down(std::size_t place) noexcept {
    timer* const entry = heap_[place];
    for (;;) {
        std::size_t child = 2 * place + 1;
        if (child >= heap_.size()) {
            break;
        }
        if (child + 1 < heap_.size() && heap_[child + 1]->due < heap_[child]->due) {
            ++child;
        }
        if (entry->due <= heap_[child]->due) {
            break;
        }
        put(place, heap_[child]);
        place = child;
    }
    put(place, entry);
}

} // namespace redlock::core
