// The state of the engine as text and figures: votes, metrics, health.

#include "engine.hpp"

#include <bit>

namespace redlock::core {

std::vector<master_vote> engine::describe(const ballots& votes, time_point now) const {
    std::vector<master_vote> out(masters_.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i].endpoint = rules_.names[i];
        if (i >= votes.of.size()) {
            continue;
        }
        const ballot& mine = votes.of[i];
        out[i].vote = mine.said;
        out[i].latency = mine.latency;
        if (mine.left != lease_unknown) {
            out[i].time_left = mine.left;
        }
        out[i].text = votes.text(i);
        if (out[i].text.empty() && mine.said == masters_[i].otherwise
            && mine.said != vote::granted) {
            out[i].text = masters_.why_not(i, now);
        }
        if (mine.said == vote::quarantined && masters_[i].link->judgement().votes_from > now) {
            out[i].time_left = std::chrono::ceil<std::chrono::milliseconds>(
                masters_[i].link->judgement().votes_from - now);
        }
    }
    return out;
}

metrics engine::count() const {
    metrics out = counters_;
    out.waiting = operations_.size();
    claims_.for_each([&](const claim& one) {
        out.held += one.is_held() ? 1U : 0U;
        if (one.is_ending()) {
            out.pending_removals +=
                static_cast<std::size_t>(std::popcount(one.ending().overdue(one.left_behind)));
        }
    });
    for (const member& one : masters_) {
        out.release_notifications += one.pushes->messages();
        out.notification_connections += one.notifies() ? 1U : 0U;
        out.subscriptions = std::max(out.subscriptions, one.pushes->watched());
    }
    out.members = masters_.members().members.size();
    out.generation = masters_.members().number;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        master_metrics& mine = out.masters.emplace_back(masters_[i].link->counters());
        mine.endpoint = rules_.names[i];
        mine.granted = mine.acquire_votes[vote::granted];
        mine.held = mine.acquire_votes[vote::held];
        mine.failed = mine.acquire_votes.total() - mine.granted - mine.held;
    }
    return out;
}

health engine::examine(time_point now) const {
    health out;
    out.ready = running() && ready();
    out.admitted = masters_.admitted();
    out.quorum = masters_.needed();
    out.protocol = rules_.protocol;
    out.quarantine_off = !rules_.quarantine;
    out.key_prefix = rules_.key_prefix;
    out.max_ttl = rules_.max_ttl;
    out.quarantine_time = std::chrono::ceil<std::chrono::milliseconds>(rules_.quarantine_time());
    out.master_timeout = rules_.master_timeout;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        out.masters.push_back(masters_.health_of(i, now));
    }
    out.members = masters_.members().members;
    out.generation = masters_.members().number;
    out.change = masters_.change_text(now);
    return out;
}

} // namespace redlock::core
