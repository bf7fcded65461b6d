#include "query.hpp"

#include "answer.hpp"
#include "hash.hpp"

#include <algorithm>
#include <chrono>
#include <ranges>

namespace redlock::core {

void query::answered(std::size_t master, command_kind kind, const reply& answer) {
    master_lock_status& mine = result.masters[master];
    --pending_;
    if (kind == command_kind::pttl) {
        if (!answer.is_integer() || mine.vote != vote::held) {
            return;
        }
        mine.time_left = lease_left(answer.integer);
        if (answer.integer == -1) {
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
    auto& masters = result.masters;
    for (master_lock_status& one : masters) {
        one.vote = one.vote == vote::pending ? vote::timed_out : one.vote;
    }
    const auto is = [&](std::size_t i, vote what) {
        return masters[i].vote == what && (members & set_of(i)) != 0;
    };
    const auto all = std::views::iota(std::size_t{0}, masters.size());
    const auto count = [&](auto which) {
        return static_cast<std::size_t>(std::ranges::count_if(all, which));
    };
    for (std::size_t i = 0; i < masters.size() && result.state != lock_state::held; ++i) {
        const auto agrees = [&](std::size_t j) {
            return is(j, vote::held) && owners_[i] == owners_[j];
        };
        if (masters[i].vote != vote::held || count(agrees) < quorum) {
            continue;
        }
        result.state = lock_state::held;
        result.owner = masters[i].owner;
        const time_point last = nth_largest(all, quorum, [&](std::size_t j) {
            return agrees(j) && masters[j].time_left ? time_point(*masters[j].time_left) : never;
        });
        if (last != never) {
            result.time_left =
                std::chrono::duration_cast<std::chrono::milliseconds>(last.time_since_epoch());
        }
    }
    if (count([&](std::size_t i) { return is(i, vote::absent); }) >= quorum) {
        result.state = lock_state::free;
    }
}

} // namespace redlock::core
