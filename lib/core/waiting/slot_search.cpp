#include "slot_search.hpp"

#include "core/base/hash.hpp"

#include <utility>

namespace redlock::core {

void slot_tally::reset(
    std::size_t masters, std::size_t quorum, std::uint32_t slots, std::uint32_t wanted) {
    quorum_ = quorum;
    wanted_ = wanted;
    masters_.assign(masters, part{});
    free_.assign(slots, 0);
}

void slot_tally::told(std::size_t master, std::uint32_t first, std::string_view free) {
    part& mine = masters_[master];
    --mine.awaited;
    for (std::size_t i = 0; i < free.size() && first + i < free_.size(); ++i) {
        const std::uint8_t one = free[i] == '1' ? 1 : 0;
        mine.free += one;
        free_[first + i] += one;
    }
}

std::size_t slot_tally::complete() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        masters_, [](const part& one) { return one.valid && one.awaited == 0; }));
}

std::size_t slot_tally::found() const noexcept {
    return static_cast<std::size_t>(
        std::ranges::count_if(free_, [this](std::uint8_t masters) { return masters >= quorum_; }));
}

void slot_tally::choose(std::size_t most, jitter& random, std::vector<std::uint32_t>& out) const {
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

slot_status judge_slot(const std::vector<std::string_view>& tokens, std::size_t quorum) {
    for (const std::string_view one : tokens) {
        if (static_cast<std::size_t>(std::ranges::count(tokens, one)) >= quorum) {
            return one.empty() ? slot_status{lock_state::free, {}}
                               : slot_status{lock_state::held, digest_of(one)};
        }
    }
    return {};
}

} // namespace redlock::core
