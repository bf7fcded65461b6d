#include "slot_scans.hpp"

#include "core/bytes/command.hpp"
#include "core/bytes/keys.hpp"
#include "core/bytes/scripts.hpp"

namespace redlock::core {

void slot_scan::begin(
    std::size_t masters,
    std::size_t quorum,
    std::uint32_t slots,
    std::uint32_t wanted,
    bool with_owners) {
    slots_ = slots;
    found.reset(masters, quorum, slots, wanted);
    votes.reset(masters);
    if (with_owners) {
        owners_.assign(masters, std::vector<std::optional<std::string>>(slots));
    }
}

void slot_scan::answered(
    std::size_t master,
    unsigned command,
    bool native,
    const reply& got,
    std::chrono::milliseconds max_ttl,
    bool may_vote) {
    may_vote_ |= may_vote ? set_of(master) : 0U;
    const std::uint32_t first = first_of(command);
    const std::uint32_t count = count_of(command);
    std::string free;
    if (native && got.is_array(count)) {
        for (std::uint32_t i = 0; i < count; ++i) {
            const reply& owner = got.elements[i];
            free += owner.type == reply_type::nil ? '1' : '0';
            if (wants_owners()) {
                owners_[master][first + i] = std::string(owner.text);
            }
        }
    } else if (
        !native && got.is_array(2) && got.elements[0].text.size() == count
        && got.elements[1].is_integer()) {
        free = got.elements[0].text;
        const std::chrono::milliseconds left(got.elements[1].integer);
        if (left.count() >= 0 && left <= max_ttl
            && (votes.left(master) == lease_unknown || left < votes.left(master))) {
            votes.set_left(master, left);
        }
    }
    if (free.empty()) {
        failed(master, vote::error, got.is_error() ? got.text : "unexpected reply");
    } else {
        found.told(master, first, free);
    }
}

void slot_scan::certified(std::size_t master, bool kept) {
    found.told(master, 0, {});
    may_vote_ &= kept ? ~master_set{0} : ~set_of(master);
}

void slot_scan::dropped(std::size_t master, std::string_view why) {
    failed(master, vote::unreachable, why);
}

void slot_scan::failed(std::size_t master, vote what, std::string_view why) {
    votes.of[master].said = what;
    votes.note(master, why);
    found.failed(master);
}

// Only timely replies count.
void slot_scan::explain() {
    for (std::size_t i = 0; i < votes.of.size(); ++i) {
        ballot& mine = votes.of[i];
        if (mine.said != vote::pending) {
            continue;
        }
        mine.said = found.owes(i) ? vote::timed_out : vote::held;
        if (!found.owes(i) && found.free_on(i) > 0) {
            votes.note(
                i,
                std::to_string(found.free_on(i)) + " of " + std::to_string(slots_)
                    + " slots are free there");
        }
    }
}

lock_status slot_scan::status(std::size_t quorum) {
    lock_status out;
    explain();
    for (std::size_t i = 0; i < votes.of.size(); ++i) {
        const bool unused = votes.of[i].said == vote::held && found.free_on(i) == slots_;
        master_vote& one = out.masters.emplace_back();
        one.vote = unused ? vote::absent : votes.of[i].said;
        one.text = votes.text(i);
    }
    std::vector<std::string_view> tokens;
    for (std::uint32_t i = 0; i < slots_; ++i) {
        tokens.clear();
        for (std::size_t master = 0; master < owners_.size(); ++master) {
            const std::optional<std::string>& owner = owners_[master][i];
            if (owner && (!owner->empty() || (may_vote_ & set_of(master)) != 0)) {
                tokens.push_back(*owner);
            }
        }
        out.slots.push_back(judge_slot(tokens, quorum));
    }
    out.state = out.count(lock_state::free) > 0         ? lock_state::free
                : out.count(lock_state::held) == slots_ ? lock_state::held
                                                        : lock_state::undecided;
    return out;
}

slot_scan& slot_scans::create(
    std::string_view pool_key, std::uint32_t slots, std::uint32_t wanted, bool with_owners) {
    slot_scan& made = scans_.create();
    made.key = pool_key;
    made.begin(masters_.size(), masters_.majority(), slots, wanted, with_owners);
    return made;
}

slot_scan& slot_scans::start(const acquire_call& wanted, time_point now) {
    const slot_search& search = *wanted.search;
    slot_scan& asking = create(wanted.key, search.slots(), search.wants(), false);
    asking.asked_by = wanted.self;
    if (masters_.ready()) {
        ask_masters(asking, now);
    } else {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            asking.votes.of[i].said = masters_[i].admitted ? vote::pending : masters_[i].otherwise;
        }
    }
    return asking;
}

void slot_scans::ask(
    std::uint64_t cookie, std::string_view pool, std::uint32_t slots, time_point now) {
    std::string key;
    assign_pool_key(key, rules_.key_prefix, pool);
    slot_scan& asking = create(key, slots, slots, true);
    asking.cookie = cookie;
    ask_masters(asking, now);
    if (asking.found.over()) {
        report(asking);
    } else {
        timers_.set(asking.wake, later(now, rules_.master_timeout));
    }
}

void slot_scans::ask_masters(slot_scan& asking, time_point now) {
    wire_.flush(); // a slot may be free after the removals of this turn
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        // The status of a pool includes masters that may not vote.
        const connection& link = *masters_[i].link;
        const bool answers = asking.wants_owners()
                                 ? link.up() && !link.silent() && !masters_[i].duplicate
                                 : masters_[i].admitted;
        if (!answers || link.overloaded()) {
            asking.votes.of[i].said = answers ? vote::unreachable : masters_[i].otherwise;
            continue;
        }
        const bool certifies = asking.wants_owners() && rules_.guarded();
        asking.found.asked(i, asking.commands() + (certifies ? 1 : 0));
        for (unsigned command = 0; command < asking.commands(); ++command) {
            send(asking, i, command, now);
        }
        if (certifies) {
            wire_.send(
                i,
                {"GET", rules_.record_key},
                {.kind = command_kind::read_record,
                 .record = link.record(),
                 .to = &replies_,
                 .subject = asking.self},
                now);
        }
    }
}

void slot_scans::send(
    const slot_scan& asking, std::size_t master, unsigned command, time_point now) {
    const std::uint32_t first = slot_scan::first_of(command);
    const std::uint32_t count = asking.count_of(command);
    // Only the guarded protocol uses a script: plain also works where scripts are forbidden. It is
    // rare, and sent whole: no command variant needs to be remembered.
    const bool owners = asking.wants_owners() || !rules_.guarded();
    const decimal number(count);
    std::vector<std::string_view> words{"MGET"};
    if (!owners) {
        words = {"EVAL", scan_slots, number};
    }
    std::vector<std::string> keys(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        assign_slot_key(keys[i], asking.key, first + i);
        words.push_back(keys[i]);
    }
    std::string bytes;
    append_command(bytes, words);
    wire_.send(
        master,
        bytes,
        {.kind = command_kind::scan_slots,
         .how = owners ? command_variant::native : command_variant::eval,
         .epoch = static_cast<std::uint16_t>(command),
         .to = &replies_,
         .subject = asking.self},
        now);
}

slot_scan* slot_scans::answered(const arrival& at, const reply* answer) {
    slot_scan* const asking = scans_.find(at.command.subject.to<slot_scan>());
    if (asking == nullptr) {
        return nullptr; // the search has continued without this scan
    }
    if (answer == nullptr) {
        asking->dropped(at.master, masters_[at.master].link->why_down());
    } else if (at.command.kind == command_kind::read_record) {
        asking->certified(at.master, masters_[at.master].link->certifies(at.command, *answer));
    } else {
        const bool native = at.command.how == command_variant::native;
        asking->answered(
            at.master,
            at.command.epoch,
            native,
            *answer,
            masters_.longest_ttl(),
            masters_[at.master].admitted);
    }
    if (!asking->decided()) {
        return nullptr;
    }
    if (asking->asked_by) {
        return asking;
    }
    report(*asking);
    return nullptr;
}

void slot_scans::due(std::uint32_t index) {
    if (slot_scan* const asking = scans_.find(index)) {
        report(*asking);
    }
}

void slot_scans::end_all() {
    scans_.for_each([this](slot_scan& asking) { report(asking); });
}

void slot_scans::report(slot_scan& done) {
    timers_.cancel(done.wake);
    lock_status status = done.status(masters_.majority());
    for (std::size_t i = 0; i < status.masters.size(); ++i) {
        status.masters[i].endpoint = rules_.names[i];
    }
    host_.queried(done.cookie, std::move(status));
    scans_.destroy(done);
}

} // namespace redlock::core
