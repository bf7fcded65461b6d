#include "slot_scan.hpp"

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
    std::chrono::milliseconds max_ttl) {
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

pool_status slot_scan::status(std::size_t quorum) const {
    pool_status out;
    out.answered = found.complete();
    out.quorum = quorum;
    std::vector<std::string_view> tokens;
    for (std::uint32_t i = 0; i < slots_; ++i) {
        tokens.clear();
        for (const auto& said : owners_) {
            if (said[i]) {
                tokens.push_back(*said[i]);
            }
        }
        out.slots.push_back(judge_slot(tokens, quorum));
    }
    return out;
}

} // namespace redlock::core
