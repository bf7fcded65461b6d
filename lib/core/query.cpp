// Queries the owner of a lock: GET and PTTL on every connected master, and a verdict.

#include "engine.hpp"
#include "hash.hpp"
#include "keys.hpp"

#include <algorithm>
#include <chrono>

namespace redlock::core {

void engine::ask(std::uint64_t cookie, std::string_view resource, time_point now) {
    sender_.flush(); // commands that were queued before must be executed first
    query& asked = queries_.create();
    asked.wake.owner = timer_owner::query;
    asked.wake.subject = asked.self;
    asked.cookie = cookie;
    asked.result.masters.resize(masters_.size());
    asked.owners.resize(masters_.size());
    std::string key;
    assign_lock_key(key, rules_.key_prefix, resource);
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        master_lock_status& mine = asked.result.masters[i];
        mine.endpoint = rules_.names[i];
        connection& link = *masters_[i].link;
        if (!link.up() || link.silent()) {
            mine.vote = masters_[i].otherwise;
            mine.text = masters_.why_not(i, now);
            continue;
        }
        asked.pending += 2;
        sender_.send(i, {"GET", key}, {.kind = command_kind::get, .subject = asked.self}, now);
        sender_.send(i, {"PTTL", key}, {.kind = command_kind::pttl, .subject = asked.self}, now);
    }
    if (asked.pending == 0) {
        query_done(asked);
    } else {
        timers_.set(asked.wake, later(now, rules_.master_timeout));
    }
}

void engine::query_answered(
    query& asked, std::size_t master, const sent_command& command, const reply& answer) {
    master_lock_status& mine = asked.result.masters[master];
    --asked.pending;
    if (command.kind == command_kind::pttl) {
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
        asked.owners[master] = answer.text;
        mine.owner = digest_of(answer.text);
        break;
    default:
        mine.vote = answer.text.starts_with("WRONGTYPE") ? vote::owned_by_other : vote::error;
        mine.text = answer.text;
    }
}

void engine::query_done(query& asked) {
    timers_.cancel(asked.wake);
    lock_status& result = asked.result;
    std::size_t absent = 0; // of the members: no other master has a vote
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        master_lock_status& mine = result.masters[i];
        if (mine.vote == vote::pending) {
            mine.vote = vote::timed_out;
        }
        absent += mine.vote == vote::absent && masters_.is_member(i) ? 1U : 0U;
        std::vector<time_point> ends;
        std::size_t same = 0;
        for (std::size_t j = 0; j < masters_.size(); ++j) {
            const master_lock_status& theirs = result.masters[j];
            const bool agrees = mine.vote == vote::held && theirs.vote == vote::held
                                && masters_.is_member(j) && asked.owners[i] == asked.owners[j];
            same += agrees ? 1U : 0U;
            ends.push_back(agrees && theirs.time_left ? time_point(*theirs.time_left) : never);
        }
        if (same >= masters_.needed() && result.state != lock_state::held) {
            result.state = lock_state::held;
            result.owner = mine.owner;
            const time_point last = nth_largest(ends, masters_.needed());
            if (last != never) {
                result.time_left =
                    std::chrono::duration_cast<std::chrono::milliseconds>(last.time_since_epoch());
            }
        }
    }
    if (absent >= masters_.needed()) {
        result.state = lock_state::free;
    }
    host_.queried(asked);
    queries_.destroy(asked);
}

} // namespace redlock::core
