// Which masters make up the quorum, by their own records: its founding, changes of one master at a
// time, and the refusal of a client that knows too few of them. test/model/founding.pml and
// changes.pml are the models.
//
// A master votes for a client only while its record has the generation of members that the client
// has adopted: the newest one that it has read, in which its own list has a majority. A planned
// change counts for nothing yet. All records are written on condition that they still are what the
// client has read.
//
// - Founding: a list is written to all its masters. Then all records are read once more. If each is
//   still the one that was read before, all masters had the list at the same moment. Then it is
//   written as agreed, which nothing replaces any more, and in the same way as final.
// - Another list replaces one that is not agreed if all its own masters have replied: a quarantine
//   after that one was written, or at once if an operator says so. Nothing was granted under it.
// - Change: the plan is written to all masters that belong to the quorum before and after, in
//   alphabetical order, then to a new one. It never replaces another plan. A second look as above,
//   then a wait for the longest quarantine: now no lease from before the last change is left. Then
//   the plan becomes final.
// - Return: a master without a list receives the newest one of those on N - q + 1 members, all of
//   which were read after its loss was seen, and the longest quarantine of theirs. Any lease has a
//   vote of one of them, and a client records its quarantine before the vote. Leases of the
//   generation before may still be valid, so as many of its members must have been read.
// - A master with an older generation receives the present one.
// - `max_ttl` is changed like the members. While its plan stands, a client uses at most that ttl
//   there, and each script and certificate refuses clients that have not read the plan. So after
//   the wait every longer lease is over, and the final list shortens the quarantine.

#pragma once

#include "core/base/validity.hpp"
#include "member_list.hpp"
#include "settings.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core {

class membership {
public:
    /// What a handshake asks a master to record.
    struct proposal {
        std::string list; // empty: nothing
        std::string id;   // the record must have this id; empty: it must have no list
        std::chrono::microseconds quarantine{0}; // that is recorded with the list
        bool unused = false;                     // no lock can have been on the master
    };

    /// Members of `rules` that are empty are not enforced: all configured masters are members.
    explicit membership(const settings& rules);

    bool enforced() const noexcept { return !own_.members.empty(); }
    /// The members that votes are counted by. Before the first generation is known, those
    /// configured.
    std::size_t voters() const noexcept { return voters_; }
    std::size_t quorum() const noexcept { return quorum_; }
    /// The generation of members; its number is 0 until one is known.
    const generation& members() const noexcept { return view_; }
    /// The number of generations that this client has adopted.
    std::uint32_t adopted() const noexcept { return adopted_; }
    /// Whether this configured master is a member, as far as they are known.
    bool is_member(std::size_t master) const {
        return view_.number == 0 || view_.contains(rules_.members[master]);
    }
    /// Whether its reply counts: it is a member, or there are no members (plain protocol).
    bool is_known_member(std::size_t master) const {
        return !enforced() || (known_members_ & set_of(master)) != 0;
    }
    /// Whether this configured master is a member, and votes by its record for this generation.
    bool serves(std::size_t master) const;
    /// Whether its record has no list, or one that is not final.
    bool being_founded(std::size_t master) const noexcept;
    /// Makes this change from now on, and no other one; none: stops. What is planned stays so.
    void make(std::optional<member_change> what, time_point now);
    /// Reads the records of all masters again.
    void read_again() noexcept { asked_ = ++look_; }
    /// Whether a majority has had these members since then, and no newer ones are known.
    bool confirmed() const;
    /// The progress of the change that this client makes; empty: none, or it is made.
    std::string change_text(time_point now) const;
    /// The masters that must reply before that change goes on.
    std::vector<std::size_t> awaited() const;
    /// The list in its record, as last read.
    const recorded_list& recorded(std::size_t master) const noexcept { return seen_[master].list; }
    /// The `max_ttl` that is planned in its record: longer leases may not begin there, because
    /// leases from before are only waited for once. `ttl_max`: none.
    std::chrono::milliseconds planned_max_ttl(std::size_t master) const noexcept {
        const recorded_list& list = seen_[master].list;
        const std::chrono::milliseconds planned = list.list.last.max_ttl;
        return list.is_planned() && planned.count() != 0 ? planned : ttl_max;
    }
    /// Why this master does not vote; empty if it does.
    std::string why_not(std::size_t master, time_point now) const;

    /// \name Handshakes
    /// \{
    proposal proposal_to(std::size_t master);
    /// Whether it is not empty, for a master whose record was read.
    bool proposes(std::size_t master) const;
    /// A number that changes with each change of a record. A handshake carries it, so that its
    /// reply shows whether it was sent after the change.
    std::uint32_t look() const noexcept { return look_; }
    /// The record in the reply to a handshake that was sent at `look`, and the end of the
    /// quarantine.
    void read(
        std::size_t master,
        std::string_view record,
        std::uint32_t look,
        time_point now,
        time_point votes_from);
    /// Whether another handshake would make progress now.
    bool wants_handshake(std::size_t master) const;
    /// When `time_passed` has something to do.
    time_point next_due() const noexcept { return std::min(commit_at_, replace_at_); }
    void time_passed(time_point now) noexcept;
    /// \}

private:
    using state = recorded_list::state;
    struct seen {
        std::string_view name;
        bool known = false; // read at least once
        recorded_list list;
        std::string id; // of the record
        std::chrono::microseconds quarantine{0};
        std::uint32_t read_at = 0;     // look of the handshake that read it
        std::uint32_t proposed_at = 0; // look of the last proposal
        std::uint32_t refused_at = 0;  // look of the last one that changed nothing
        time_point votes_from{};       // the end of its quarantine
    };
    enum class stage : std::uint8_t { agreeing, waiting, committing }; // of the change
    /// The change that this client makes.
    struct plan {
        recorded_list list;
        /// Those that belong to the quorum before and after it, then a new one. Empty if this
        /// client does not know them all.
        std::vector<const seen*> masters;

        bool on_all() const;
    };

    bool accepts(const member_names& members) const;
    void adopt(generation&& newer);
    void adopt(const recorded_list& of);
    void look_for_agreement(time_point now);
    /// The longest that any client has asked a member for.
    std::chrono::microseconds longest_quarantine() const;
    const seen* find(std::string_view name) const;
    /// Whether its members are those that this client has adopted.
    bool is_ours(const recorded_list& list) const {
        return view_.number != 0 && list.number() == view_.number && list.voting() == view_.members;
    }
    bool is_fresh(const seen& one) const noexcept {
        return one.read_at == look_ && one.list.founded();
    }
    bool all_just_read() const noexcept;
    bool founding_everywhere(state least = state::founding) const;
    bool can_be_founded() const;
    /// Whether another client founds a quorum of other masters there.
    bool is_rival(const recorded_list& list) const {
        return list.what == state::founding && list.list != own_;
    }
    void look_for_rivals(time_point now);
    bool lost_by_most() const;
    recorded_list founding_of(const seen& one) const;
    const recorded_list* newer() const;
    bool stays_away(const seen& one) const;
    bool wanted_over(const seen& one) const;
    recorded_list change_on(const seen& one) const;
    recorded_list returned_to(const seen& master) const;
    recorded_list wanted_on(const seen& one) const;
    bool refuted(const recorded_list& plan) const;
    std::ptrdiff_t recorded_by(const recorded_list& list) const {
        return std::ranges::count(seen_, list, &seen::list);
    }
    std::size_t read_of(const member_names& of) const;
    /// N - q + 1: each majority has one of them.
    bool enough_read(const member_names& of) const {
        return read_of(of) >= of.size() - quorum_of(of.size()) + 1;
    }
    bool enough_before() const;
    bool needs_look() const;
    std::chrono::microseconds quarantine_with(const recorded_list& next, const seen& one) const;
    /// Whether the members are those that the change of this client leads to.
    bool made_in_view() const {
        const member_change& what = *change_;
        return what.max_ttl.count() != 0 ? view_.last == what
                                         : view_.contains(what.name) == what.adds;
    }
    std::optional<plan> planned() const;
    std::string why_not_founded() const;
    std::string why_foreign(std::size_t master, time_point now) const;
    std::string other_name(std::size_t master) const;
    std::string plans_text() const;

    const settings& rules_;
    generation own_; // the list of this client
    generation view_;
    master_set known_members_ = 0; // the configured masters among them
    std::size_t voters_;
    std::size_t quorum_;
    std::vector<seen> seen_;
    std::optional<member_change> change_; // that this client makes
    std::uint32_t look_ = 1;
    std::uint32_t asked_ = 0; // look from which on a record was read again
    std::uint32_t adopted_ = 0;
    bool moved_ = false; // a record has changed since it was first read, and since `make`
    bool over_ = false;  // the change was made, or others were since
    stage stage_ = stage::agreeing;
    time_point commit_at_ = forever;
    time_point changed_at_ = never;   // a record has changed
    time_point replace_at_ = forever; // the lists of others that are not final
    bool replacing_ = false;          // that moment has passed
    bool contradicted_ = false;       // another client has replaced this client's list
};

} // namespace redlock::core
