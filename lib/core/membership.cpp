#include "membership.hpp"

#include "decisions.hpp"

#include <algorithm>
#include <utility>

namespace redlock::core {

namespace {

// Digits of an id, before its list.
constexpr std::size_t id_size = 32;
constexpr char is_being_founded = '0';
constexpr char is_final = '1';

// For messages. What is not hexadecimal is left as it is.
std::string text_of(std::string_view hex) {
    const auto digit = [](char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    };
    std::string out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        const int high = digit(hex[i]);
        const int low = digit(hex[i + 1]);
        if (high < 0 || low < 0) {
            return std::string(hex);
        }
        const char c = static_cast<char>(16 * high + low);
        out += c == list_separator ? ", " : std::string(1, c);
    }
    return out;
}

} // namespace

membership::seen membership::read_record(std::string_view record) const {
    seen found;
    found.id = record.substr(record.rfind(' ') + 1);
    if (found.id.size() <= id_size) {
        found.what = state::none;
        return found;
    }
    const std::string_view list = std::string_view(found.id).substr(id_size + 1);
    found.is_final = found.id[id_size] == is_final;
    if (list == rules_.members) {
        found.what = found.is_final ? state::member : state::founding;
    } else {
        found.what = state::foreign;
        found.list = text_of(list);
    }
    return found;
}

membership::proposal membership::proposal_to(std::size_t master) const {
    if (!enforced()) {
        return {};
    }
    if (founded_) {
        return {is_final + rules_.members, {}};
    }
    return all(true) ? proposal{is_final + rules_.members, seen_[master].id}
                     : proposal{is_being_founded + rules_.members, {}};
}

void membership::read(std::size_t master, std::string_view record, std::uint32_t look) {
    if (!enforced()) {
        return;
    }
    seen& mine = seen_[master];
    seen next = read_record(record);
    if (next.what == state::member) {
        look_ += founded_ ? 0U : 1U;
        founded_ = true;
        mine = std::move(next);
    } else if (next.what != mine.what || next.id != mine.id) {
        // What was confirmed was not on all masters at once.
        for (seen& one : seen_) {
            one.confirmed = false;
        }
        ++look_;
        mine = std::move(next);
    } else if (look == look_) {
        mine.refused = founded_ || mine.confirmed;
        mine.confirmed = mine.what == state::founding && all(false);
    }
}

// Whether all masters have our list, and whether that is confirmed.
bool membership::all(bool confirmed) const noexcept {
    return std::ranges::all_of(seen_, [&](const seen& one) {
        return one.what == state::founding && (one.confirmed || !confirmed);
    });
}

bool membership::wants_handshake(std::size_t master) const noexcept {
    const seen& mine = seen_[master];
    if (!enforced() || mine.refused || mine.what == state::unknown || mine.what == state::member) {
        return false;
    }
    return founded_ ? mine.what != state::foreign || !mine.is_final
                    : all(true) || (all(false) && !mine.confirmed);
}

std::string membership::why_not(std::size_t master) const {
    const seen& mine = seen_[master];
    if (wrong::any_list_votes || !enforced() || mine.what == state::member) {
        return {};
    }
    if (mine.what == state::foreign) {
        return "not a member of this client's quorum: it "
               + std::string(mine.is_final ? "belongs to" : "is being founded for") + " that of "
               + mine.list + ", and this client's list is " + text_of(rules_.members);
    }
    std::string missing;
    std::string foreign;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        if (seen_[i].what != state::founding && seen_[i].what != state::member) {
            std::string& names = seen_[i].what == state::foreign ? foreign : missing;
            names.append(names.empty() ? "" : ", ").append(rules_.names[i]);
        }
    }
    if (!foreign.empty() && !founded_) {
        return "the quorum cannot be founded: another list is recorded on " + foreign;
    }
    return missing.empty() || founded_
               ? "the quorum is being founded"
               : "the quorum is not founded yet: each master of the list must reply once; missing: "
                     + missing;
}

} // namespace redlock::core
