// What the workloads share.
#include "workload.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bench {

bool plan::has(side who) const {
    return std::find(sides.begin(), sides.end(), who) != sides.end();
}

std::vector<side> plan::protocols() const {
    std::vector<side> found;
    for (const auto who : {side::plain, side::guarded}) {
        if (has(who)) {
            found.push_back(who);
        }
    }
    return found.empty() && has(side::fenced) ? std::vector{side::fenced} : found;
}

load plan::make_load(side who, std::size_t locks) const {
    load work;
    work.who = who;
    work.in_flight = locks;
    work.duration = duration;
    work.warm_up = std::min(duration, work.warm_up);
    work.ttl = ttl;
    work.master_timeout = master_timeout;
    return work;
}

void note_failure(report& into, std::string_view where, const result& found) {
    if (found.failures > 0) {
        into.failures.push_back(fmt::format(
            "{}: {} failures, the first: {}", where, found.failures, found.first_failure));
    }
    if (found.unanswered > 0) {
        into.failures.push_back(
            fmt::format("{}: {} commands were never answered", where, found.unanswered));
    }
    if (found.keys_left > 0) {
        into.failures.push_back(fmt::format("{}: {} lock keys were left", where, found.keys_left));
    }
}

} // namespace bench
