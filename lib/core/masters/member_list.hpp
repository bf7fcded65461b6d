// The list of masters in a memory record: what it says, and its text.
//
// The id of a record is 32 hexadecimal digits. Its list follows: one digit for its state, then a
// text in hexadecimal. The first generation has the names of the masters, in alphabetical order.
// Each later one has its number, the change, and the names: "2,+d,a,b,c,d". A change adds or
// removes one master, or sets max_ttl, in ms: "3,=2000,a,b,c,d".

#pragma once

#include "core/base/hash.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core {

/// Names of masters, in alphabetical order.
using member_names = std::vector<std::string>;

/// Adds one master, or removes one, or sets the longest ttl of all clients.
struct member_change {
    bool adds = false;
    std::string name;
    std::chrono::milliseconds max_ttl{0}; // not 0: of this kind, without a name

    bool known() const noexcept { return !name.empty() || max_ttl.count() != 0; }
    /// "+name", "-name" or "=ms".
    std::string text() const {
        return max_ttl.count() != 0 ? "=" + std::to_string(max_ttl.count())
                                    : (adds ? "+" : "-") + name;
    }
    /// "add name", "remove name" or "max-ttl 2000ms", as the command line has it.
    std::string shown() const {
        return max_ttl.count() != 0 ? "max-ttl " + std::to_string(max_ttl.count()) + "ms"
                                    : (adds ? "add " : "remove ") + name;
    }
    friend bool operator==(const member_change&, const member_change&) = default;
};

/// The members of a quorum after a number of changes.
struct generation {
    std::uint64_t number = 0; // 1: as founded; 0: not founded
    member_names members;
    member_change last; // which led here; without meaning in the first generation

    bool contains(std::string_view name) const { return std::ranges::binary_search(members, name); }
    /// The next one. Empty if the change of the members has been made already.
    std::optional<generation> after(const member_change& what) const;
    /// The one before. Requires that this is not the first.
    member_names before() const {
        return last.max_ttl.count() != 0
                   ? members
                   : generation{number, members, {}}.after({!last.adds, last.name, {}})->members;
    }
    friend bool operator==(const generation&, const generation&) = default;
};

/// What a record says of the quorum.
struct recorded_list {
    enum class state : std::uint8_t {
        none,     // nothing
        founding, // the first generation, not final; another list may replace it
        agreed,   // the same, after all its masters had it: not replaced any more
        final,
        planned, // final is still the one before
        invalid, // of another version, or damaged
    };
    state what = state::none;
    generation list;

    bool is_planned() const noexcept { return what == state::planned; }
    /// The members that vote under this record.
    member_names voting() const { return is_planned() ? list.before() : list.members; }
    /// The number of their generation; 0: not founded.
    std::uint64_t number() const noexcept {
        return is_planned() ? list.number - 1 : what == state::final ? list.number : 0;
    }
    /// Whether it is the list of a quorum that is being founded.
    bool unfinished() const noexcept { return what == state::founding || what == state::agreed; }
    /// Whether the quorum of which this is a record was founded.
    bool founded() const noexcept { return what == state::final || is_planned(); }
    friend bool operator==(const recorded_list&, const recorded_list&) = default;
};

/// Reads the list in the id of a record.
recorded_list read_list(std::string_view id);

/// A word of a record. Number 1 is its server, and its list of members if that has changed.
std::string_view record_word(std::string_view record, int place) noexcept;

/// What follows the last blank of a record; all of it if there is none.
inline std::string_view last_word(std::string_view record) {
    return record.substr(record.rfind(' ') + 1);
}

/// The longest quarantine that a client has asked for: the word before the id of a record.
std::chrono::microseconds recorded_quarantine(std::string_view record) noexcept;

inline constexpr char list_separator = ',';
// The digits of the states in a record, in the order of the states, in the first generation and
// after it. A blank: no such record.
inline constexpr std::string_view first_marks = " 041";
inline constexpr std::string_view later_marks = "   32";

/// Appends an item of a list: "a, b, c".
inline void add_item(std::string& list, std::string_view item, std::string_view between = ", ") {
    list.append(list.empty() ? "" : between).append(item);
}

inline std::string joined(std::span<const std::string> words, std::string_view between) {
    std::string out;
    for (const std::string& word : words) {
        add_item(out, word, between);
    }
    return out;
}

/// Returns the list as it stands in a record, after the 32 digits of the id. Inline: the testing
/// kit is a library of its own.
inline std::string written(const recorded_list& list) {
    using state = recorded_list::state;
    if (list.what == state::none || list.what == state::invalid) {
        return {};
    }
    const generation& of = list.list;
    const bool first = of.number == 1;
    const char mark = (first ? first_marks : later_marks)[static_cast<std::size_t>(list.what)];
    const std::string names = joined(of.members, std::string_view(&list_separator, 1));
    const std::string text = first ? names
                                   : std::to_string(of.number) + list_separator + of.last.text()
                                         + list_separator + names;
    std::string out(1 + 2 * text.size(), mark);
    write_hex(
        {reinterpret_cast<const unsigned char*>(text.data()), text.size()},
        std::span(out).subspan(1));
    return out;
}

/// "a, b, c", for messages.
std::string shown(std::span<const std::string> names);

} // namespace redlock::core
