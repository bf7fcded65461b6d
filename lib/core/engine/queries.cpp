#include "queries.hpp"

#include "core/base/hash.hpp"
#include "core/bytes/answer.hpp"
#include "core/bytes/keys.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace redlock::core {

void query::answered(
    std::size_t master, command_kind kind, const reply& answer, std::string_view no_vote) {
    master_vote& mine = result.masters[master];
    --pending_;
    if (kind == command_kind::count_readers) {
        if (answer.is_integer() && mine.vote == vote::held) {
            mine.readers = static_cast<std::size_t>(std::max<std::int64_t>(answer.integer, 1));
        }
        return;
    }
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
        mine.text = no_vote;
        break;
    case reply_type::string:
        mine.vote = vote::held;
        owners_[master] = answer.text;
        if (answer.text == held_by_readers) {
            mine.readers = 1; // until they are counted
        } else {
            mine.owner_digest = digest_of(answer.text);
        }
        break;
    default:
        mine.vote = answer.text.starts_with("WRONGTYPE") ? vote::owned_by_other : vote::error;
        mine.text = answer.text;
    }
}

void query::certified(std::size_t master, bool kept) {
    --pending_;
    if (!kept && result.masters[master].vote == vote::absent) {
        result.masters[master].text = "its memory record has changed";
    }
}

void query::dropped(std::size_t master, std::string_view why) {
    result.masters[master].vote = vote::unreachable;
    result.masters[master].text = why;
    --pending_;
}

void query::decide(master_set members, std::size_t quorum) {
    auto& masters = result.masters;
    for (master_vote& one : masters) {
        one.vote = one.vote == vote::pending ? vote::timed_out : one.vote;
    }
    const auto is = [&](std::size_t i, vote what) {
        return masters[i].vote == what && (members & set_of(i)) != 0;
    };
    std::vector<std::size_t> all(masters.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
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
        result.owner_digest = masters[i].owner_digest;
        for (const master_vote& one : masters) { // the largest number of a majority
            const auto as_many = [&](std::size_t j) {
                return agrees(j) && masters[j].readers >= one.readers;
            };
            if (one.readers > result.readers && count(as_many) >= quorum) {
                result.readers = one.readers;
            }
        }
        const time_point last = nth_largest(all, quorum, [&](std::size_t j) {
            return agrees(j) && masters[j].time_left ? time_point(*masters[j].time_left) : never;
        });
        if (last != never) {
            result.time_left =
                std::chrono::duration_cast<std::chrono::milliseconds>(last.time_since_epoch());
        }
    }
    if (count([&](std::size_t i) { return is(i, vote::absent) && masters[i].text.empty(); })
        >= quorum) {
        result.state = lock_state::free;
    }
}

void queries::ask(std::uint64_t cookie, std::string_view resource, time_point now) {
    wire_.flush(); // commands that were queued before must be executed first
    query& asked = queries_.create();
    asked.cookie = cookie;
    asked.begin(masters_.size());
    std::string key;
    assign_lock_key(key, rules_.key_prefix, resource);
    assign_fence_key(asked.fence_key, rules_.key_prefix, resource);
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        master_vote& mine = asked.result.masters[i];
        mine.endpoint = rules_.names[i];
        const connection& link = *masters_[i].link;
        if (!link.up() || link.silent()) {
            mine.vote = masters_[i].otherwise;
            mine.text = masters_.why_not(i, now);
            continue;
        }
        asked.asked(rules_.guarded() ? 3 : 2);
        sent_command what{
            .kind = command_kind::get, .record = link.record(), .to = this, .subject = asked.self};
        wire_.send(i, {"GET", key}, what, now);
        what.kind = command_kind::pttl;
        wire_.send(i, {"PTTL", key}, what, now);
        if (rules_.guarded()) {
            what.kind = command_kind::read_record;
            wire_.send(i, {"GET", rules_.record_key}, what, now);
        }
    }
    timers_.set(asked.wake, later(now, rules_.master_timeout));
    if (asked.complete()) {
        end(asked);
    }
}

void queries::replied(const arrival& at, const reply* answer) {
    query* const asked = queries_.find(at.command.subject.to<query>());
    if (asked == nullptr) {
        return;
    }
    // Before the quorum was founded, nobody has had a lock; but a master may have lost the list.
    const bool unused = !rules_.members.empty() && masters_.members().number == 0
                        && (!rules_.quarantine || masters_[at.master].link->declared_new());
    if (answer == nullptr) {
        asked->dropped(at.master, masters_[at.master].link->why_down());
    } else if (at.command.kind == command_kind::read_record) {
        const bool kept = masters_[at.master].link->certifies(at.command, *answer);
        asked->certified(at.master, kept || unused);
    } else {
        if (at.command.kind == command_kind::get && answer->text == held_by_readers) {
            asked->asked(1);
            wire_.send(
                at.master,
                {"ZCARD", key_beside(asked->fence_key, "readers")},
                {.kind = command_kind::count_readers, .to = this, .subject = asked->self},
                at.now);
        }
        const bool votes = masters_[at.master].admitted || unused;
        asked->answered(
            at.master,
            at.command.kind,
            *answer,
            votes ? std::string() : masters_.why_not(at.master, at.now));
    }
    if (asked->complete()) {
        end(*asked);
    }
}

void queries::due(std::uint32_t index) {
    if (query* const asked = queries_.find(index)) {
        end(*asked);
    }
}

void queries::end_all() {
    queries_.for_each([this](query& asked) { end(asked); });
}

void queries::end(query& asked) {
    timers_.cancel(asked.wake);
    const auto is_member = [this](std::size_t i) { return masters_.is_member(i); };
    asked.decide(set_where(masters_.size(), is_member), masters_.majority());
    host_.queried(asked.cookie, std::move(asked.result));
    queries_.destroy(asked);
}

} // namespace redlock::core
