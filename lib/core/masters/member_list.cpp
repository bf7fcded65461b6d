#include "member_list.hpp"

#include "core/base/validity.hpp"
#include "core/bytes/command.hpp"

#include <charconv>
#include <iterator>

namespace redlock::core {

namespace {

constexpr std::size_t id_size = 32;

std::optional<std::string> from_hex(std::string_view hex) {
    const auto digit = [](char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    };
    std::string out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        const int high = digit(hex[i]);
        const int low = digit(hex[i + 1]);
        if (high < 0 || low < 0) {
            return std::nullopt;
        }
        out += static_cast<char>(16 * high + low);
    }
    return hex.size() % 2 == 0 ? std::optional(out) : std::nullopt;
}

member_names split(std::string_view text) {
    member_names out;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(list_separator, begin), text.size());
        out.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return out;
}

// Sorted, without duplicates, and no empty name.
bool well_formed(const member_names& names) {
    return !names.empty() && !names.front().empty()
           && std::ranges::adjacent_find(names, std::greater_equal<>()) == names.end();
}

// "+d", "-d" or "=2000".
std::optional<member_change> read_change(std::string_view text) {
    const std::string_view what = text.substr(std::min<std::size_t>(1, text.size()));
    std::int64_t ms = 0;
    if (text.starts_with('=')) {
        return parse_number(what, ms) && ms > 0 && ms <= ttl_max.count()
                   ? std::optional(member_change{false, {}, std::chrono::milliseconds(ms)})
                   : std::nullopt;
    }
    return !what.empty() && (text[0] == '+' || text[0] == '-')
               ? std::optional(member_change{text[0] == '+', std::string(what), {}})
               : std::nullopt;
}

// "2,+d,a,b,c,d"; of the first generation the names alone.
std::optional<generation> read_generation(std::string_view text, bool first) {
    member_names words = split(text);
    if (first) {
        return well_formed(words) ? std::optional(generation{1, words, {}}) : std::nullopt;
    }
    auto change = words.size() < 3 ? std::nullopt : read_change(words[1]);
    if (!change) {
        return std::nullopt;
    }
    generation out;
    out.last = *std::move(change);
    out.members.assign(
        std::make_move_iterator(words.begin() + 2), std::make_move_iterator(words.end()));
    const bool valid =
        parse_number(words[0], out.number) && out.number > 1 && well_formed(out.members)
        && (out.last.max_ttl.count() != 0
            || (out.contains(out.last.name) == out.last.adds && !out.before().empty()));
    return valid ? std::optional(out) : std::nullopt;
}

} // namespace

std::optional<generation> generation::after(const member_change& what) const {
    generation next{number + 1, members, what};
    if (what.max_ttl.count() != 0) {
        return next;
    }
    if (contains(what.name) == what.adds) {
        return std::nullopt;
    }
    if (what.adds) {
        next.members.insert(std::ranges::lower_bound(next.members, what.name), what.name);
    } else {
        std::erase(next.members, what.name);
    }
    return next;
}

recorded_list read_list(std::string_view id) {
    using state = recorded_list::state;
    if (id.size() <= id_size) {
        return {};
    }
    const auto state_of = [mark = id[id_size]](std::string_view marks) {
        const std::size_t place = mark == ' ' ? std::string_view::npos : marks.find(mark);
        return place == std::string_view::npos ? state::invalid : static_cast<state>(place);
    };
    const auto text = from_hex(id.substr(id_size + 1));
    const state later = state_of(later_marks);
    const state what = later != state::invalid ? later : state_of(first_marks);
    const auto list = text ? read_generation(*text, later == state::invalid) : std::nullopt;
    return list && what != state::invalid ? recorded_list{what, *list}
                                          : recorded_list{state::invalid, {}};
}

std::string_view record_word(std::string_view record, int place) noexcept {
    for (; place > 0; --place) {
        record = record.substr(std::min(record.find(' '), record.size() - 1) + 1);
    }
    return record.substr(0, record.find(' '));
}

// What a damaged record asks for does not count: no configuration has a quarantine of two days.
std::chrono::microseconds recorded_quarantine(std::string_view record) noexcept {
    const std::string_view word = last_word(record.substr(0, record.rfind(' ')));
    std::int64_t us = 0;
    std::from_chars(word.begin(), word.end(), us);
    const std::chrono::microseconds out(us);
    return out.count() > 0 && out < std::chrono::hours(48) ? out : std::chrono::microseconds(0);
}

std::string shown(std::span<const std::string> names) {
    constexpr std::size_t longest = 1'000;
    std::string out = joined(names, ", ");
    if (out.size() > longest) {
        out.resize(longest);
        out += "...";
    }
    return out;
}

} // namespace redlock::core
