#include "slot_search.hpp"

#include "core/base/hash.hpp"

#include <utility>

namespace redlock::core {

slot_status judge_slot(const std::vector<std::string_view>& tokens, std::size_t quorum) {
    for (const std::string_view one : tokens) {
        if (static_cast<std::size_t>(std::ranges::count(tokens, one)) >= quorum) {
            return one.empty() ? slot_status{lock_state::free, {}}
                               : slot_status{lock_state::held, digest_of(one)};
        }
    }
    return {};
}

void slot_scan::begin(
    std::size_t masters,
    std::size_t quorum,
    std::uint32_t slots,
    std::uint32_t wanted,
    bool with_owners) {
    slots_ = slots;
    quorum_ = quorum;
    wanted_ = wanted;
    masters_.assign(masters, part{});
    free_.assign(slots, 0);
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
        part& mine = masters_[master];
        --mine.awaited;
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint8_t one = free[i] == '1' ? 1 : 0;
            mine.free += one;
            free_[first + i] += one;
        }
    }
}

void slot_scan::certified(std::size_t master, bool kept) {
    --masters_[master].awaited;
    may_vote_ &= kept ? ~master_set{0} : ~set_of(master);
}

void slot_scan::dropped(std::size_t master, std::string_view why) {
    failed(master, vote::unreachable, why);
}

void slot_scan::failed(std::size_t master, vote what, std::string_view why) {
    votes.of[master].said = what;
    votes.note(master, why);
    --masters_[master].awaited;
    masters_[master].valid = false;
}

std::size_t slot_scan::complete() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        masters_, [](const part& one) { return one.valid && one.awaited == 0; }));
}

std::size_t slot_scan::found() const noexcept {
    return static_cast<std::size_t>(
        std::ranges::count_if(free_, [this](std::uint8_t masters) { return masters >= quorum_; }));
}

void slot_scan::choose(std::size_t most, jitter& random, std::vector<std::uint32_t>& out) const {
    out.clear();
    std::size_t seen = 0;
    for (std::uint32_t i = 0; i < free_.size(); ++i) {
        if (free_[i] < quorum_) {
            continue;
        }
        ++seen;
        if (out.size() < most) {
            out.push_back(i);
        } else if (const std::size_t place = random.below(seen); place < most) {
            out[place] = i;
        }
    }
    for (std::size_t i = out.size(); i > 1; --i) {
        std::swap(out[i - 1], out[random.below(i)]);
    }
}

// Only timely replies count.
void slot_scan::explain() {
    for (std::size_t i = 0; i < votes.of.size(); ++i) {
        ballot& mine = votes.of[i];
        if (mine.said != vote::pending) {
            continue;
        }
        const bool owes = masters_[i].awaited > 0;
        mine.said = owes ? vote::timed_out : vote::held;
        if (!owes && masters_[i].free > 0) {
            votes.note(
                i,
                std::to_string(masters_[i].free) + " of " + std::to_string(slots_)
                    + " slots are free there");
        }
    }
}

lock_status slot_scan::status(std::size_t quorum) {
    lock_status out;
    explain();
    for (std::size_t i = 0; i < votes.of.size(); ++i) {
        const bool unused = votes.of[i].said == vote::held && masters_[i].free == slots_;
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

} // namespace redlock::core
