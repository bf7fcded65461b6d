#include "masters_report.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace redlock::core {

std::vector<master_vote>
describe(const ballots& votes, const settings& rules, const masters& masters, time_point now) {
    std::vector<master_vote> out(masters.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i].endpoint = rules.names[i];
        if (i >= votes.of.size()) {
            continue;
        }
        const ballot& mine = votes.of[i];
        out[i].vote = mine.said;
        out[i].latency = mine.latency;
        if (votes.left(i) != lease_unknown) {
            out[i].time_left = votes.left(i);
        }
        out[i].text = votes.text(i);
        if (out[i].text.empty() && mine.said == masters[i].otherwise
            && mine.said != vote::granted) {
            out[i].text = masters.why_not(i, now);
        }
        const std::chrono::nanoseconds left = masters[i].link->judgement().left(now);
        if (mine.said == vote::quarantined && left.count() > 0) {
            out[i].time_left = std::chrono::ceil<std::chrono::milliseconds>(left);
        }
    }
    return out;
}

metrics
count(metrics counters, pool<claim>& claims, const settings& rules, const masters& masters) {
    metrics out = std::move(counters);
    claims.for_each([&](const claim& one) {
        out.held += one.is_held() ? 1U : 0U;
        if (one.is_ending()) {
            out.pending_removals += one.overdue();
        }
    });
    for (const master& one : masters) {
        out.release_notifications += one.pushes->messages();
        out.notification_connections += one.notifies() ? 1U : 0U;
        out.subscriptions = std::max(out.subscriptions, one.pushes->watched());
    }
    for (std::size_t i = 0; i < masters.size(); ++i) {
        master_metrics& mine = out.masters.emplace_back(masters[i].link->counters());
        mine.endpoint = rules.names[i];
    }
    return out;
}

health examine(const settings& rules, const masters& masters, bool running, time_point now) {
    health out;
    out.ready = running && masters.ready();
    out.admitted = masters.admitted();
    out.quorum = masters.majority();
    out.protocol = rules.protocol;
    out.quarantine_off = !rules.quarantine;
    out.key_prefix = rules.key_prefix;
    out.max_ttl = masters.ttl_limit();
    out.quarantine_time = std::chrono::ceil<std::chrono::milliseconds>(masters.quarantine_time());
    out.master_timeout = rules.master_timeout;
    for (std::size_t i = 0; i < masters.size(); ++i) {
        out.masters.push_back(masters.health_of(i, now));
    }
    out.members = masters.members().members;
    out.generation = masters.members().number;
    out.change = masters.change_text(now);
    return out;
}

void master_log::write(log_level level, std::size_t master, std::string_view text) const {
    if (host_.logs(level)) {
        host_.log(level, (rules_.names[master] + ": ").append(text));
    }
}

void master_log::noted(std::size_t master, std::string_view text) const {
    write(log_level::info, master, text);
}

void master_log::clock_stepped(std::size_t master, std::chrono::microseconds by) const {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(by);
    write(
        log_level::warning,
        master,
        "its clock was stepped by " + std::to_string(ms.count()) + " ms, or this machine's was");
}

void master_log::clocks_stepped(std::size_t masters) const {
    if (host_.logs(log_level::warning)) {
        host_.log(
            log_level::warning,
            "the clocks of " + std::to_string(masters)
                + " masters seem to have been stepped at once: taken for a step of this machine's "
                  "clock");
    }
}

void master_log::publish_refused(std::size_t master) const {
    write(
        log_level::warning,
        master,
        "PUBLISH is refused, so releases notify no waiter and waiters poll: "
            + masters_[master].link->unpublished()
            + "; the ACL must allow +publish and the channels &" + rules_.key_prefix + "*");
}

void master_log::voter_changed(std::size_t master, time_point now) const {
    const auto& one = masters_[master];
    const bool fault = one.otherwise == vote::duplicate || one.otherwise == vote::error;
    write(
        fault ? log_level::warning : log_level::info,
        master,
        (one.admitted ? "admitted" : "does not vote: ") + masters_.why_not(master, now));
}

void master_log::members_changed() const {
    if (host_.logs(log_level::info)) {
        const generation& present = masters_.members();
        host_.log(
            log_level::info,
            "members of the quorum, generation " + std::to_string(present.number) + ": "
                + shown(present.members));
    }
}

void master_log::waits_for_quorum(time_point now) const {
    if (!host_.logs(log_level::warning)) {
        return;
    }
    std::string reasons;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if (!masters_[i].admitted) {
            reasons.append(reasons.empty() ? ": " : ", ")
                .append(rules_.names[i] + " (" + masters_.why_not(i, now) + ")");
        }
    }
    host_.log(
        log_level::warning,
        "waiting for a quorum: " + std::to_string(masters_.admitted()) + " of "
            + std::to_string(masters_.size()) + " masters vote, "
            + std::to_string(masters_.majority()) + " are needed" + reasons);
}

} // namespace redlock::core
