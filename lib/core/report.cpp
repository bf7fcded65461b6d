// The engine in words and figures: votes, metrics, health.

#include "engine.hpp"
#include "reasons.hpp"

#include <bit>

namespace redlock::core {

std::string engine::why_not(std::size_t master, time_point now) const {
    const member& one = masters_[master];
    const connection& link = *one.link;
    switch (one.otherwise) {
    case vote::duplicate:
        return "the same server (run id) as another configured master";
    case vote::quarantined: {
        const auto left =
            std::chrono::ceil<std::chrono::seconds>(link.judgement().votes_from - now);
        return std::to_string(left.count()) + " s left: its memory is younger than the quarantine";
    }
    case vote::timed_out:
        return silent_text(rules_);
    case vote::error:
        return link.up() ? link.judgement().text : link.why_down();
    case vote::unreachable:
        return link.why_down();
    default:
        return {};
    }
}

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
        if (mine.left != not_told) {
            out[i].time_left = mine.left;
        }
        out[i].text = votes.text(i);
        if (out[i].text.empty() && mine.said == masters_[i].otherwise
            && mine.said != vote::granted) {
            out[i].text = why_not(i, now);
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
        out.held += one.stage == claim::phase::held ? 1U : 0U;
        out.debts += static_cast<std::size_t>(std::popcount(one.end.debts(one.left_behind)));
    });
    for (const member& one : masters_) {
        out.pushes += one.pushes->messages();
        out.push_connections += notifies(one) ? 1U : 0U;
        out.subscriptions = std::max(out.subscriptions, one.pushes->watched());
    }
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
    out.admitted = admitted_;
    out.quorum = rules_.quorum();
    out.protocol = rules_.protocol;
    out.quarantine_off = !rules_.quarantine;
    out.key_prefix = rules_.key_prefix;
    out.max_ttl = rules_.max_ttl;
    out.quarantine_time = std::chrono::ceil<std::chrono::milliseconds>(rules_.quarantine_time());
    out.master_timeout = rules_.master_timeout;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        const member& one = masters_[i];
        const connection& link = *one.link;
        master_health& mine = out.masters.emplace_back();
        mine.endpoint = rules_.names[i];
        mine.text = why_not(i, now);
        mine.run_id = link.info().run_id;
        mine.version = link.info().version;
        const std::string& unpublished = link.unpublished();
        mine.pushes = one.pushes->refused()   ? "refused: " + one.pushes->why_not()
                      : !unpublished.empty()  ? "refused: PUBLISH: " + unpublished
                      : one.pushes->live()    ? "live"
                      : !one.pushes->wanted() ? "off"
                                              : "down: " + one.pushes->why_not();
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
                std::chrono::ceil<std::chrono::milliseconds>(link.judgement().votes_from - now);
            break;
        default:
            mine.state = link.up()           ? master_state::unfit
                         : link.connecting() ? master_state::connecting
                                             : master_state::down;
        }
        if (!link.info().run_id.empty()) {
            const ladder& commands = link.commands();
            mine.compare_and_delete = commands.delete_command == native_delete::delex ? "DELEX"
                                      : commands.delete_command == native_delete::delifeq
                                          ? "DELIFEQ"
                                      : commands.evalsha ? "EVALSHA"
                                                         : "EVAL";
        }
    }
    return out;
}

} // namespace redlock::core
