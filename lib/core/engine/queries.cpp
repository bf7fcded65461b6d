#include "queries.hpp"

#include "core/base/hash.hpp"
#include "core/bytes/answer.hpp"
#include "core/bytes/keys.hpp"
#include "core/waiting/slot_search.hpp"

#include <bit>
#include <chrono>

namespace redlock::core {

void query::answered(
    std::size_t master, command_kind kind, const reply& answer, std::string_view no_vote) {
    master_vote& mine = result.masters[master];
    --awaited_[master];
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
        owners_[master][0] = answer.text;
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

void query::slots_answered(
    std::size_t master, std::uint32_t first, const reply& answer, bool may_vote) {
    --awaited_[master];
    may_vote_ |= may_vote ? set_of(master) : 0U;
    const std::size_t count =
        std::min<std::size_t>(slot_scan::slots_per_command, result.slots.size() - first);
    if (!answer.is_array(count)) {
        result.masters[master].vote = vote::error;
        result.masters[master].text = answer.is_error() ? answer.text : "unexpected reply";
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        owners_[master][first + i] = answer.elements[i].text;
    }
}

void query::certified(std::size_t master, bool kept) {
    --awaited_[master];
    may_vote_ &= kept ? ~master_set{0} : ~set_of(master);
    master_vote& theirs = result.masters[master];
    if (!kept && theirs.vote == vote::absent && theirs.text.empty()) {
        theirs.text = "its memory record has changed";
    }
}

void query::dropped(std::size_t master, std::string_view why) {
    result.masters[master].vote = vote::unreachable;
    result.masters[master].text = why;
    --awaited_[master];
}

void query::decide(master_set members, std::size_t quorum) {
    auto& masters = result.masters;
    if (!result.slots.empty()) {
        decide_slots(members, quorum);
        return;
    }
    for (master_vote& one : masters) {
        one.vote = one.vote == vote::pending ? vote::timed_out : one.vote;
    }
    const auto is = [&](std::size_t i, vote what) {
        return masters[i].vote == what && (members & set_of(i)) != 0;
    };
    const auto count = [&](auto which) {
        return static_cast<std::size_t>(std::popcount(set_where(masters.size(), which)));
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
        const time_point last = nth_largest(each_of(members), quorum, [&](std::size_t j) {
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

void query::decide_slots(master_set members, std::size_t quorum) {
    const std::size_t size = result.slots.size();
    for (std::size_t i = 0; i < result.masters.size(); ++i) {
        master_vote& mine = result.masters[i];
        if (mine.vote != vote::pending) {
            continue;
        }
        const auto free = static_cast<std::size_t>(std::ranges::count(owners_[i], ""));
        mine.vote = awaited_[i] > 0 ? vote::timed_out : free == size ? vote::absent : vote::held;
        if (awaited_[i] == 0 && free > 0) {
            mine.text =
                std::to_string(free) + " of " + std::to_string(size) + " slots are free there";
        }
    }
    for (std::size_t slot = 0; slot < size; ++slot) {
        std::vector<std::string_view> tokens; // empty ones of masters where it is free
        for (const std::size_t i : each_of(members)) {
            const std::optional<std::string>& owner = owners_[i][slot];
            if (owner && (!owner->empty() || (may_vote_ & set_of(i)) != 0)) {
                tokens.push_back(*owner);
            }
        }
        for (const std::string_view one : tokens) {
            if (static_cast<std::size_t>(std::ranges::count(tokens, one)) >= quorum) {
                result.slots[slot] = one.empty() ? slot_status{lock_state::free, {}}
                                                 : slot_status{lock_state::held, digest_of(one)};
            }
        }
    }
    result.state = result.count(lock_state::free) > 0       ? lock_state::free
                   : result.count(lock_state::held) == size ? lock_state::held
                                                            : lock_state::undecided;
}

void queries::ask(
    std::uint64_t cookie, std::string_view name, std::uint32_t slots, time_point now) {
    wire_.flush(); // commands that were queued before must be executed first
    query& asked = queries_.create();
    asked.cookie = cookie;
    asked.begin(masters_.size(), slots);
    std::string key;
    if (slots == 0) {
        assign_lock_key(key, rules_.key_prefix, name);
        assign_fence_key(asked.fence_key, rules_.key_prefix, name);
    } else {
        assign_pool_key(key, rules_.key_prefix, name);
    }
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        master_vote& mine = asked.result.masters[i];
        mine.endpoint = rules_.names[i];
        const connection& link = *masters_[i].link;
        if (!link.up() || link.silent() || masters_[i].duplicate) {
            mine.vote = masters_[i].otherwise;
            mine.text = masters_.why_not(i, now);
            continue;
        }
        sent_command what{.record = link.record(), .to = this, .subject = asked.self};
        const auto send = [&](command_kind kind, const std::vector<std::string_view>& words) {
            asked.asked(i, 1);
            what.kind = kind;
            std::string bytes;
            append_command(bytes, words);
            masters_.send(i, bytes, what, now);
        };
        for (std::uint32_t first = 0; first < slots; first += slot_scan::slots_per_command) {
            const auto keys =
                slot_keys(key, first, std::min(slot_scan::slots_per_command, slots - first));
            std::vector<std::string_view> words{"MGET"};
            words.insert(words.end(), keys.begin(), keys.end());
            what.epoch = static_cast<std::uint16_t>(first / slot_scan::slots_per_command);
            send(command_kind::scan_slots, words);
        }
        if (slots == 0) {
            send(command_kind::get, {"GET", key});
            send(command_kind::pttl, {"PTTL", key});
        }
        if (rules_.guarded()) {
            send(command_kind::read_record, {"GET", rules_.record_key});
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
    const connection& link = *masters_[at.master].link;
    // Before the quorum was founded, nobody has had a lock; but a master may have lost the list.
    const bool unused = !rules_.members.empty() && masters_.members().number == 0
                        && (!rules_.quarantine || link.declared_new());
    const bool votes = masters_[at.master].admitted || unused;
    if (answer == nullptr) {
        asked->dropped(at.master, link.why_down());
    } else if (at.command.kind == command_kind::read_record) {
        asked->certified(at.master, unused || link.certifies(at.command, *answer));
    } else if (at.command.kind == command_kind::scan_slots) {
        const std::uint32_t first = at.command.epoch * slot_scan::slots_per_command;
        asked->slots_answered(at.master, first, *answer, votes);
    } else {
        if (at.command.kind == command_kind::get && answer->text == held_by_readers) {
            asked->asked(at.master, 1);
            wire_.send(
                at.master,
                {"ZCARD", key_beside(asked->fence_key, "readers")},
                {.kind = command_kind::count_readers, .to = this, .subject = asked->self},
                at.now);
        }
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
