#include "queries.hpp"

#include "keys.hpp"

#include <string>

namespace redlock::core {

void queries::ask(std::uint64_t cookie, std::string_view resource, time_point now) {
    sender_.flush(); // commands that were queued before must be executed first
    query& asked = queries_.create();
    asked.wake.owner = timer_owner::query;
    asked.wake.subject = asked.self;
    asked.cookie = cookie;
    asked.begin(masters_.size());
    std::string key;
    assign_lock_key(key, rules_.key_prefix, resource);
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        master_lock_status& mine = asked.result.masters[i];
        mine.endpoint = rules_.names[i];
        const connection& link = *masters_[i].link;
        if (!link.up() || link.silent()) {
            mine.vote = masters_[i].otherwise;
            mine.text = masters_.why_not(i, now);
            continue;
        }
        asked.asked();
        sender_.send(i, {"GET", key}, {.kind = command_kind::get, .subject = asked.self}, now);
        sender_.send(i, {"PTTL", key}, {.kind = command_kind::pttl, .subject = asked.self}, now);
    }
    timers_.set(asked.wake, later(now, rules_.master_timeout));
    if (asked.complete()) {
        end(asked);
    }
}

void queries::answered(const arrival& at, const reply* answer) {
    query* const asked = queries_.find(at.command.subject);
    if (asked == nullptr) {
        return;
    }
    if (answer != nullptr) {
        asked->answered(at.master, at.command.kind, *answer);
    } else {
        asked->dropped(at.master, masters_[at.master].link->why_down());
    }
    if (asked->complete()) {
        end(*asked);
    }
}

void queries::due(handle name) {
    if (query* const asked = queries_.find(name)) {
        end(*asked);
    }
}

void queries::end_all() {
    queries_.for_each([this](query& asked) { end(asked); });
}

void queries::end(query& asked) {
    timers_.cancel(asked.wake);
    const auto is_member = [this](std::size_t i) { return masters_.is_member(i); };
    asked.decide(set_where(masters_.size(), is_member), masters_.needed());
    host_.queried(asked);
    queries_.destroy(asked);
}

} // namespace redlock::core
