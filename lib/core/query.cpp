#include "query.hpp"

#include "hash.hpp"

#include <algorithm>
#include <chrono>

namespace redlock::core {

void query::answered(std::size_t master, command_kind kind, const reply& answer) {
    master_lock_status& mine = result.masters[master];
    --pending_;
    if (kind == command_kind::pttl) {
        if (answer.type == reply_type::integer && answer.integer >= 0 && mine.vote == vote::held) {
            // Limits an invalid value, which might not fit into nanoseconds.
            constexpr std::chrono::milliseconds most = std::chrono::years(1);
            mine.time_left = std::min(std::chrono::milliseconds(answer.integer), most);
        } else if (
            answer.type == reply_type::integer && answer.integer == -1 && mine.vote == vote::held) {
            mine.vote = vote::owned_by_other;
            mine.text = "the key has no expiry: not a lock of this library";
        }
        return;
    }
    switch (answer.type) {
    case reply_type::nil:
        mine.vote = vote::absent;
        break;
    case reply_type::string:
        mine.vote = vote::held;
        owners_[master] = answer.text;
        mine.owner = digest_of(answer.text);
        break;
    default:
        mine.vote = answer.text.starts_with("WRONGTYPE") ? vote::owned_by_other : vote::error;
        mine.text = answer.text;
    }
}

void query::dropped(std::size_t master, std::string_view why) {
    result.masters[master].vote = vote::unreachable;
    result.masters[master].text = why;
    --pending_;
}

void query::decide(master_set members, std::size_t quorum) {
    std::size_t absent = 0;
    for (std::size_t i = 0; i < result.masters.size(); ++i) {
        master_lock_status& mine = result.masters[i];
        if (mine.vote == vote::pending) {
            mine.vote = vote::timed_out;
        }
        absent += mine.vote == vote::absent && (members & set_of(i)) != 0 ? 1U : 0U;
        std::vector<time_point> ends;
        std::size_t same = 0;
        for (std::size_t j = 0; j < result.masters.size(); ++j) {
            const master_lock_status& theirs = result.masters[j];
            const bool agrees = mine.vote == vote::held && theirs.vote == vote::held
                                && (members & set_of(j)) != 0 && owners_[i] == owners_[j];
            same += agrees ? 1U : 0U;
            ends.push_back(agrees && theirs.time_left ? time_point(*theirs.time_left) : never);
        }
        if (same >= quorum && result.state != lock_state::held) {
            result.state = lock_state::held;
            result.owner = mine.owner;
            const time_point last = nth_largest(ends, quorum);
            if (last != never) {
                result.time_left =
                    std::chrono::duration_cast<std::chrono::milliseconds>(last.time_since_epoch());
            }
        }
    }
    if (absent >= quorum) {
        result.state = lock_state::free;
    }
}

} // namespace redlock::core
