#include "slot_search.hpp"

#include <utility>

namespace redlock::core {

void slot_scan::begin(
    std::size_t masters, std::size_t quorum, std::uint32_t slots, std::uint32_t wanted) {
    slots_ = slots;
    quorum_ = quorum;
    wanted_ = wanted;
    masters_.assign(masters, part{});
    free_.assign(slots, 0);
    votes.reset(masters);
}

void slot_scan::answered(
    std::size_t master, unsigned command, const reply& got, std::chrono::milliseconds max_ttl) {
    const std::uint32_t first = first_of(command);
    const std::uint32_t count = count_of(command);
    std::string free;
    const bool of_script = got.is_array(2) && got.elements[1].is_integer();
    if (of_script && got.elements[0].text.size() == count) {
        free = got.elements[0].text;
        const std::chrono::milliseconds left(got.elements[1].integer);
        if (left.count() >= 0 && left <= max_ttl
            && (votes.left(master) == lease_unknown || left < votes.left(master))) {
            votes.set_left(master, left);
        }
    } else if (!of_script && got.is_array(count)) {
        for (const reply& owner : got.elements) {
            free += owner.type == reply_type::nil ? '1' : '0';
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

} // namespace redlock::core
