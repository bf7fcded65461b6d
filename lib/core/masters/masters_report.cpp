// What is reported: why a master does not vote, the progress of a change of the members, and the
// health.

#include "masters.hpp"

#include <iterator>
#include <map>

namespace redlock::core {

std::string membership::why_not(std::size_t master, time_point now) const {
    if (serves(master)) {
        return {};
    }
    const recorded_list& list = seen_[master].list;
    if (list.what == state::invalid) {
        return "its memory record has a list of masters of another version, or a damaged one";
    }
    const bool foreign = list.founded() || (list.unfinished() && list.list != own_);
    if (view_.number == 0) {
        return foreign ? why_foreign(master, now) : why_not_founded();
    }
    const std::string ours = shown(view_.members);
    if (const recorded_list* const present = newer()) {
        return "the members of the quorum have changed to " + shown(present->voting())
               + ", and this client's list has too few of them, or too many other masters: "
               + shown(own_.members);
    }
    if (!view_.contains(seen_[master].name)) {
        return "not a member of the quorum: its members are " + ours;
    }
    if (list.unfinished()) {
        return "its list of members is not final yet; a client that may found the quorum and "
               "connects "
               "to all masters finishes it";
    }
    if (!list.founded()) {
        return "it lost its memory record, and receives the members of the quorum from the others "
               "when enough of them have theirs";
    }
    return list.number() < view_.number
               ? "its memory record has earlier members of the quorum, and receives the present "
                 "ones: "
                     + ours
               : "its memory record has other members, " + shown(list.voting())
                     + ", than this client has read elsewhere: " + ours;
}

// A master without changes of members has only lists that contain it.
std::string membership::other_name(std::size_t master) const {
    const generation& list = seen_[master].list.list;
    member_names others;
    std::ranges::set_difference(list.members, own_.members, std::back_inserter(others));
    others.resize(std::min<std::size_t>(others.size(), 3)); // both lists are shown as well
    return list.number != 1 || others.empty() || list.contains(seen_[master].name)
               ? std::string()
               : " (the same server by another name, " + shown(others)
                     + (seen_[master].list.founded()
                            ? ": write it in that way)"
                            : ": write it in the same way everywhere, or name it: "
                              "redis://host:port?name=NAME)");
}

// Of a master with another list than this client's, before the members are known.
std::string membership::why_foreign(std::size_t master, time_point now) const {
    const recorded_list& list = seen_[master].list;
    const std::string lists = "that of " + shown(list.voting()) + ", and this client's list is "
                              + shown(own_.members) + other_name(master);
    const std::string out = "not a member of this client's quorum: it ";
    if (list.founded()) {
        return out + "belongs to " + lists;
    }
    if (list.what == state::agreed) {
        return out + "is being founded for " + lists
               + "; all its masters have had that list: `redlock members found` with it makes it "
                 "final. If one of them has another list now: stop all clients, and DEL "
               + rules_.record_key + " here";
    }
    const std::string remedy = "`redlock members found` with the right list";
    const auto left = std::chrono::ceil<std::chrono::seconds>(std::max(replace_at_, now) - now);
    return out + "is being founded for " + lists
           + (contradicted_ && !rules_.replaces
                  ? "; another client replaced this list by that one: correct one of the two, then "
                    "run "
                        + remedy
              : replacing_ ? "; this list replaces that one now"
              : replace_at_ != forever
                  ? "; this list replaces that one in " + std::to_string(left.count())
                        + " s, and its quarantine follows; at once by " + remedy
                        + ", with --new without a quarantine"
                  : "; this list can replace that one when each of its masters "
                    "has replied, without another list that is final: "
                        + remedy);
}

// "add d (planned on a, b)" for each plan of these members.
std::string membership::plans_text() const {
    std::map<std::string, std::string> masters; // by plan
    for (const seen& one : seen_) {
        if (one.list.is_planned() && is_ours(one.list)) {
            add_item(masters[one.list.list.last.shown()], one.name);
        }
    }
    std::string out;
    for (const auto& [plan, of] : masters) {
        add_item(out, plan + " (planned on " + of + ")");
    }
    return out;
}

std::vector<std::size_t> membership::awaited() const {
    const auto next = stage_ != stage::waiting ? planned() : std::nullopt;
    std::vector<std::size_t> out;
    for (const seen* const one : next ? next->masters : std::vector<const seen*>()) {
        out.push_back(static_cast<std::size_t>(one - seen_.data()));
    }
    return out;
}

std::string membership::change_text(time_point now) const {
    if (!change_) {
        return rules_.replaces && view_.number == 0 ? why_not_founded() : plans_text();
    }
    if (view_.number == 0) {
        return "the members of the quorum are not known yet";
    }
    const auto next = planned();
    if (!next) {
        return made_in_view() ? std::string()
               : over_        ? "the members have changed since, to " + shown(view_.members)
                             + ": begin the change again if it is still wanted"
               : view_.members.size() == 1 ? "a quorum of one master cannot change"
               : view_.members.size() == 2
                   ? "a quorum of two masters cannot lose one"
                   : "the members must be more than half of this client's list";
    }
    if (stage_ == stage::committing) {
        return "being made final";
    }
    if (stage_ == stage::waiting) {
        const auto left = std::chrono::ceil<std::chrono::seconds>(std::max(commit_at_, now) - now);
        return "planned on all masters; final in " + std::to_string(left.count()) + " s";
    }
    std::string missing;
    std::string others;
    for (const std::string& name : next->list.list.members) {
        const seen* const one = find(name);
        if (one == nullptr) {
            return name + " is not in this client's list of masters";
        }
        if (stays_away(*one)) {
            return name
                   + " has the memory record of another quorum, or of long ago: empty it first";
        }
        if (!one->list.is_planned()) {
            add_item(missing, name);
        } else if (one->list != next->list) {
            add_item(others, name + " (" + one->list.list.last.shown() + ")");
        }
    }
    return !others.empty() ? "waits for another change, which is planned on " + others
                                 + "; if nobody makes that one any more, make it first"
           : !missing.empty() ? "to be planned on " + missing
                              : "planned on all masters; reading them once more";
}

std::string membership::why_not_founded() const {
    std::string missing; // without a reply, nothing is written
    std::string foreign;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        const recorded_list& list = seen_[i].list;
        if (list.what != state::none && (!list.unfinished() || list.list != own_)) {
            add_item(foreign, rules_.names[i]);
        } else if (!seen_[i].known) {
            add_item(missing, rules_.names[i]);
        }
    }
    if (!foreign.empty()) {
        return "the quorum is not founded: another list is recorded on " + foreign;
    }
    return missing.empty()
               ? rules_.founds ? "the quorum is being founded" : "the quorum is not founded yet"
               : "the quorum is not founded yet: each master of the list must reply "
                 "once; missing: "
                     + missing;
}

std::string masters::why_not(std::size_t master, time_point now) const {
    const auto& one = all_[master];
    const connection& link = *one.link;
    switch (one.otherwise) {
    case vote::duplicate:
        return "the same server (run id) as another configured master";
    case vote::quarantined: {
        if (one.stepped) {
            return "its clock was stepped, or this machine's was";
        }
        if (link.introducing_again()) {
            return "its memory record is read again, because it may have changed";
        }
        const auto left = std::chrono::ceil<std::chrono::seconds>(link.judgement().left(now));
        const bool raised = link.raised();
        return std::to_string(left.count()) + " s left: "
               + (raised ? "a longer max_ttl was set, and it has not kept its data for as long yet"
                         : "new, restarted or emptied recently");
    }
    case vote::error:
        return !link.up()              ? link.why_down()
               : !link.judgement().fit ? link.judgement().text
                                       : list_.why_not(master, now);
    case vote::timed_out:
    case vote::unreachable:
        return link.why_down();
    default:
        return {};
    }
}

std::string masters::change_text(time_point now) const {
    std::string away;
    for (const std::size_t i : list_.awaited()) {
        const connection& link = *all_[i].link;
        const std::string& why =
            !link.up() || link.silent() ? link.why_down() : link.judgement().text;
        if (!why.empty()) {
            away.append(away.empty() ? "; waits for " : ", ")
                .append(rules_.members[i] + " (" + why + ")");
        }
    }
    return list_.change_text(now) + away;
}

master_health masters::health_of(std::size_t master, time_point now) const {
    const auto& one = all_[master];
    const connection& link = *one.link;
    master_health mine;
    mine.endpoint = rules_.names[master];
    mine.text = why_not(master, now);
    const recorded_list& list = list_.recorded(master);
    mine.generation = list.number();
    mine.planned = list.is_planned() ? list.list.last.shown() : "";
    mine.run_id = link.info().run_id;
    mine.version = link.info().version;
    const std::string& unpublished = link.unpublished();
    if (!one.pushes->forbidden() && !unpublished.empty()) {
        mine.notifications_text = "PUBLISH: " + unpublished;
    } else if (one.pushes->started() && !one.pushes->live()) {
        mine.notifications_text = one.pushes->why_down();
    }
    mine.state = one.otherwise == vote::granted                        ? master_state::admitted
                 : one.otherwise == vote::timed_out                    ? master_state::silent
                 : one.otherwise == vote::duplicate                    ? master_state::duplicate
                 : one.otherwise == vote::quarantined                  ? master_state::quarantined
                 : link.connecting()                                   ? master_state::connecting
                 : !link.up()                                          ? master_state::down
                 : link.judgement().fit && list_.being_founded(master) ? master_state::founding
                                                                       : master_state::ineligible;
    if (mine.state == master_state::quarantined) {
        mine.quarantine_left =
            std::chrono::ceil<std::chrono::milliseconds>(link.judgement().left(now));
    }
    if (!link.info().run_id.empty()) {
        mine.compare_and_delete = link.commands().evalsha ? "EVALSHA" : "EVAL";
    }
    return mine;
}

} // namespace redlock::core
