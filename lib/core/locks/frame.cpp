#include "frame.hpp"

#include "core/bytes/guarded_scripts.hpp"
#include "core/bytes/scripts.hpp"

#include <algorithm>
#include <array>

namespace redlock::core {

namespace {

const script& script_of(command_kind kind, bool checks) noexcept {
    return kind == command_kind::acquire  ? guarded_acquire
           : kind == command_kind::remove ? guarded_release
           : checks                       ? guarded_extend
                                          : compare_and_extend_each;
}

} // namespace

// A call is refused as late as a whole, at the earliest deadline of its locks. So locks share a
// call only if their deadlines are close.
frame& frames::frame_for(const command& what, bool alone, time_point now) {
    const call_terms& common = what;
    for (auto name = open_.rbegin(); !alone && name != open_.rend(); ++name) {
        frame& one = *frames_.find(*name);
        if (one.alone || one.items.size() == frame::locks_max) {
            continue;
        }
        const time_point first = std::min(one.by_first, what.by);
        const time_point last = std::max(one.by_last, what.by);
        if (one == common && (first == last || last - first <= (first - now) / 8)) {
            return one;
        }
    }
    frame& fresh = frames_.create();
    static_cast<call_terms&>(fresh) = common;
    fresh.alone = alone;
    fresh.text = static_cast<std::uint32_t>(open_.size());
    if (texts_.size() == fresh.text) {
        texts_.emplace_back();
    }
    arguments& text = texts_[fresh.text];
    if (fresh.native && text.set_ttl != what.ttl) {
        text.set_end = set_end(what.ttl);
        text.set_ttl = what.ttl;
    }
    text.keys.clear();
    text.tokens.clear();
    text.counters.clear();
    open_.push_back(fresh.self);
    return fresh;
}

void frames::add(const command& what, bool alone, time_point now) {
    frame& one = frame_for(what, alone, now);
    added_at_ = now;
    one.by_first = std::min(one.by_first, what.by);
    one.by_last = std::max(one.by_last, what.by);
    one.items.push_back(what.item);
    full_ = full_ || one.items.size() == frame::locks_max;
    arguments& text = texts_[one.text];
    if (one.native) {
        text.keys.add_formatted(set_begin());
        text.keys.add(what.names.lock);
        text.keys.add(what.names.token);
        text.keys.add_formatted(text.set_end);
        return;
    }
    text.keys.add(what.names.lock);
    text.tokens.add(what.names.token);
    if (one.has_counters()) {
        text.keys.add(what.names.fence);
        text.counters.add(decimal(what.token));
    }
}

std::vector<frames::unsent> frames::drop(std::size_t master, bool native) {
    std::vector<unsent> out;
    for (const handle<frame> name : open_) {
        frame& one = *frames_.find(name);
        if ((one.to & set_of(master)) != 0 && (one.native || !native)) {
            one.to &= ~set_of(master);
            for (const frame::item& each : one.items) {
                out.push_back({one.kind, each});
            }
        }
    }
    return out;
}

void frames::write(
    std::string& out,
    const frame& what,
    command_variant how,
    std::string_view record,
    first_counter first) const {
    const arguments& text = texts_[what.text];
    if (what.native) {
        out.append(text.keys.text());
        return;
    }
    const std::size_t locks = what.items.size();
    const bool removes = what.kind == command_kind::remove;
    const bool acquires = what.kind == command_kind::acquire;
    const bool checks = !removes && !record.empty();
    const std::size_t keys = locks * (what.has_counters() ? 2 : 1) + (checks ? 1 : 0);
    const std::size_t per_lock = what.has_counters() && !acquires ? 2 : 1;
    const bool may_start = acquires && what.has_counters();
    // Two ttls and three guard arguments; ttl and mask; ttl.
    const std::size_t common = (checks ? 5 : removes ? 2 : 1) + (may_start ? 2 : 0);
    append_array(out, 3 + keys + locks * per_lock + common);
    append_argument(out, verb(how));
    append_argument(out, body(how, script_of(what.kind, checks)));
    append_argument(out, decimal(keys));
    if (checks) {
        append_argument(out, record);
    }
    out.append(text.keys.text());
    if (!removes) {
        append_argument(out, decimal(what.ttl.count()));
    }
    if (removes || checks) {
        append_argument(out, decimal(what.fence_ttl.count()));
    }
    if (may_start) {
        append_argument(out, decimal(first.value_us));
        append_argument(out, decimal(first.earliest_us));
    }
    out.append(text.tokens.text());
    if (!acquires) {
        out.append(text.counters.text());
    }
}

void frames::write_publishes(std::string& out, const frame& what, std::size_t master) {
    std::array<char, frame::locks_max> mask;
    std::ranges::transform(what.items, mask.begin(), [&](const frame::item& one) {
        return (one.publishes & set_of(master)) != 0 ? '1' : '0';
    });
    append_argument(out, {mask.data(), what.items.size()});
}

} // namespace redlock::core
