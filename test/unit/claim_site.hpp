// A claim without an engine, and what it says after each event: a line of a table each.

#pragma once

#include "core/locks/claim.hpp"
#include "virtual_quorum.hpp"

namespace unit {

namespace core = redlock::core;
using core::command_kind;
using core::steps;

/// A vote, with the fencing counter that came with it.
struct said : core::answer {
    said(vote what, std::uint64_t counted = 0) : core::answer{.said = what, .counter = counted} {}
};

/// What a claim has to say after an event.
struct after {
    after() = default;
    after(core::master_set masters) : to(masters) {}
    after(errc why_failed, const char* with_vote = "") : why(why_failed), text(with_vote) {}
    after(const char* with_vote) : text(with_vote) {}

    core::master_set to = 0; // of a raise or a HEAL
    errc why{};              // of a failure
    std::string_view text;   // with the vote of that master
};

/// A reply to a command of the present epoch, and what follows.
struct heard {
    command_kind of;
    std::size_t master;
    said got;
    steps then;
    after says = {};
};

/// Makes one: `acquired(0, granted, won)`.
template <command_kind Of>
constexpr auto reply_to =
    [](std::size_t master, said got, steps then = steps::none, const after& says = {}) {
        const bool counts = Of == command_kind::acquire || Of == command_kind::extend;
        return heard{Of, master, got, counts ? steps::counted | then : then, says};
    };
inline constexpr auto acquired = reply_to<command_kind::acquire>;
inline constexpr auto extended = reply_to<command_kind::extend>;
inline constexpr auto raised = reply_to<command_kind::raise>;
inline constexpr auto healed = reply_to<command_kind::heal>;

/// A majority of the masters is needed, three of them unless a test says otherwise.
struct claim_site {
    static constexpr time_point t0{seconds(1'000'000)};

    explicit claim_site(core::settings with = settings_for(3))
        : rules(std::move(with)),
          voters(rules.size()) {}

    core::circumstances at() { return at(now); }
    core::circumstances at(time_point moment) {
        return {moment, rules, core::quorum_of(rules.size()), voters, up, milliseconds(5), chance};
    }
    /// An acquire, of which nothing was sent.
    void begin(const core::claim_terms& wanted) {
        it.acquire(core::lock_form::exclusive, {}, wanted, at());
        it.begin(at());
    }
    void acquire(const core::claim_terms& wanted, std::size_t arbiter = core::nobody) {
        begin(wanted);
        it.ask(arbiter);
    }
    void attach(const core::claim_terms& wanted) {
        it.attach({}, wanted, seconds(30), at());
        it.begin(at());
        it.ask();
    }
    /// Nobody renews it.
    void hold(time_point until) {
        it.hold({.stop_margin = {}, .renew = false}, until, core::forever, at());
    }
    /// An extension that is under way to all.
    void extend(milliseconds ttl) {
        it.extend(ttl, false, at());
        for (std::size_t i = 0; i < rules.size(); ++i) {
            it.extends_on(i, true);
        }
    }
    steps hear(command_kind of, std::size_t master, const core::answer& got) {
        return it.answered({.master = master, .kind = of, .epoch = it.epoch_of(of)}, got, at());
    }
    void hear(const std::vector<heard>& replies) {
        for (const heard& one : replies) {
            INFO("reply " << &one - replies.data());
            CHECK(hear(one.of, one.master, one.got) == one.then);
            CHECK((!has(one.then, steps::raise | steps::heal) || it.to() == one.says.to));
            CHECK((!has(one.then, steps::failed) || it.why() == one.says.why));
            CHECK(it.votes.text(one.master) == one.says.text);
        }
    }
    /// Votes in the order of the masters, `pending` for none: the last decides.
    void
    hear(command_kind of, const std::vector<vote>& votes, steps each, steps last, errc why = {}) {
        for (std::size_t i = 0; i < votes.size(); ++i) {
            if (votes[i] != vote::pending) {
                hear({{of, i, votes[i], i + 1 == votes.size() ? last : each, why}});
            }
        }
    }
    vote vote_of(std::size_t master) const { return it.votes.of[master].said; }
    time_point until(std::size_t master) const { return it.votes.of[master].until(); }

    core::settings rules;
    std::size_t voters;
    core::master_set up = ~core::master_set{0};
    core::jitter chance{1};
    time_point now = t0;
    core::claim it;
};

} // namespace unit
