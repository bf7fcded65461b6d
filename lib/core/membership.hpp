// Which masters make up the quorum, by their own records: the founding of a quorum, and the refusal
// of a client whose list is another one. test/model/founding.pml is the model.
//
// A memory record has no list, a list that is being founded, or a final list, as part of its id
// (guarded_scripts.hpp). A master votes for a client only if its record has the client's list, and
// that list is final.
//
// - Founding: a list is written to all its masters, never over another list. Then all records are
//   read once more. If each is still the one that was read before, all masters had the list at the
//   same moment, and it becomes final.
// - Return: a master without a final list receives that of a client that has read it on another
//   master.
//
// So two different lists are never final at once, unless all masters that both lists have in
// common lose their records.

#pragma once

#include "hex.hpp"
#include "settings.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core {

/// Returns the canonical text of a list, for `settings::members`: hexadecimal, in alphabetical
/// order.
inline constexpr char list_separator = ',';
inline std::string list_of(std::span<const std::string> names) {
    std::vector<std::string_view> sorted(names.begin(), names.end());
    std::ranges::sort(sorted);
    std::string text;
    for (const std::string_view name : sorted) {
        text.append(text.empty() ? "" : std::string_view(&list_separator, 1)).append(name);
    }
    std::string out(2 * text.size(), '0');
    write_hex({reinterpret_cast<const unsigned char*>(text.data()), text.size()}, out);
    return out;
}

class membership {
public:
    /// The list that a handshake asks a master to record. Without `rules.members`, none.
    struct proposal {
        std::string list; // with its state; empty: none
        std::string id;   // the record must have this id; empty: any
    };

    explicit membership(const settings& rules) : rules_(rules), seen_(rules.size()) {}

    /// Whether records must have a list at all.
    bool enforced() const noexcept { return !rules_.members.empty(); }
    proposal proposal_to(std::size_t master) const;
    /// A number that changes with each change of a record. A handshake carries it, so that its
    /// reply shows whether it was sent after the change.
    std::uint32_t look() const noexcept { return look_; }
    /// The record in the reply to a handshake that was sent at `look`.
    void read(std::size_t master, std::string_view record, std::uint32_t look);
    /// Whether another handshake would make progress now.
    bool wants_handshake(std::size_t master) const noexcept;
    /// Whether its record has no list, or ours while it is being founded.
    bool being_founded(std::size_t master) const noexcept {
        return seen_[master].what == state::none || seen_[master].what == state::founding;
    }
    /// Why this master does not vote; empty if its record has our list, and that is final.
    std::string why_not(std::size_t master) const;

private:
    enum class state : std::uint8_t {
        unknown,  // not read yet
        none,     // without a list
        founding, // ours, not final
        member,   // ours, final
        foreign,  // another list
    };
    struct seen {
        state what = state::unknown;
        std::string id;         // of the record
        std::string list;       // another list, as text
        bool is_final = false;  // the other list
        bool confirmed = false; // read again since all had our list
        bool refused = false;   // the last proposal changed nothing
    };

    seen read_record(std::string_view record) const;
    bool all(bool confirmed) const noexcept;

    const settings& rules_;
    std::vector<seen> seen_;
    std::uint32_t look_ = 0;
    bool founded_ = false; // a master has had our list as final
};

} // namespace redlock::core
