#include "ballots.hpp"

#include "core/masters/masters.hpp"

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

} // namespace redlock::core
