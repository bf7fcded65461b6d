// What a quorum reports: why a master does not vote, how a change of the members goes on, and the
// health.

#include "masters.hpp"
#include "reasons.hpp"

#include <algorithm>
#include <vector>

namespace redlock::core {

std::string masters::why_not(std::size_t master, time_point now) const {
    const auto& one = members_[master];
    const connection& link = *one.link;
    switch (one.otherwise) {
    case vote::duplicate:
        return "the same server (run id) as another configured master";
    case vote::quarantined: {
        if (one.stepped) {
            return "its clock was stepped, or this machine's was";
        }
        const auto left = std::chrono::ceil<std::chrono::seconds>(link.judgement().left(now));
        const bool raised = link.raised();
        return std::to_string(left.count()) + " s left: "
               + (raised ? "a longer max_ttl was set, and it has not kept its data for as long yet"
                         : "new, restarted or emptied recently");
    }
    case vote::timed_out:
        return silent_text(rules_);
    case vote::error:
        return !link.up()              ? link.why_down()
               : !link.judgement().fit ? link.judgement().text
                                       : list_.why_not(master, now);
    case vote::unreachable:
        return link.why_down();
    default:
        return {};
    }
}

time_point masters::quarantined_until(time_point now) const {
    std::vector<time_point> ends;
    for (const master& one : members_) {
        const bool ends_later = one.otherwise == vote::quarantined && !one.stepped
                                && one.link->judgement().votes_from > now;
        ends.push_back(ends_later ? one.link->judgement().votes_from : never);
    }
    std::ranges::sort(ends);
    return ends[std::min(majority(), ends.size()) - 1];
}

std::string masters::change_text(time_point now) const {
    std::string away;
    for (const std::size_t i : list_.awaited()) {
        const connection& link = *members_[i].link;
        const std::string why = !link.up()              ? link.why_down()
                                : link.silent()         ? silent_text(rules_)
                                : !link.judgement().fit ? link.judgement().text
                                                        : std::string();
        if (!why.empty()) {
            away.append(away.empty() ? "; waits for " : ", ")
                .append(rules_.members[i] + " (" + why + ")");
        }
    }
    return list_.change_text(now) + away;
}

master_health masters::health_of(std::size_t master, time_point now) const {
    const auto& one = members_[master];
    const connection& link = *one.link;
    master_health mine;
    mine.endpoint = rules_.names[master];
    mine.text = why_not(master, now);
    const recorded_list& list = list_.recorded(master);
    mine.generation = list.number();
    mine.planned = list.what == recorded_list::state::planned ? list.list.last.shown() : "";
    mine.run_id = link.info().run_id;
    mine.version = link.info().version;
    using state = notification_state;
    const std::string& unpublished = link.unpublished();
    mine.notifications = one.pushes->refused() || !unpublished.empty() ? state::refused
                         : one.pushes->live()                          ? state::live
                         : !one.pushes->wanted()                       ? state::off
                                                                       : state::down;
    if (mine.notifications == state::refused && !one.pushes->refused()) {
        mine.notifications_text = "PUBLISH: " + unpublished;
    } else if (mine.notifications >= state::down) {
        mine.notifications_text = one.pushes->why_not();
    }
    switch (one.otherwise) {
    case vote::granted:
        mine.state = master_state::admitted;
        break;
    case vote::timed_out:
        mine.state = master_state::silent;
        break;
    case vote::duplicate:
        mine.state = master_state::duplicate;
        break;
    case vote::quarantined:
        mine.state = master_state::quarantined;
        mine.quarantine_left =
            std::chrono::ceil<std::chrono::milliseconds>(link.judgement().left(now));
        break;
    default:
        mine.state = link.connecting() ? master_state::connecting
                     : !link.up()      ? master_state::down
                     : link.judgement().fit && list_.being_founded(master)
                         ? master_state::founding
                         : master_state::ineligible;
    }
    if (!link.info().run_id.empty()) {
        mine.compare_and_delete = link.commands().evalsha ? "EVALSHA" : "EVAL";
    }
    return mine;
}

} // namespace redlock::core
