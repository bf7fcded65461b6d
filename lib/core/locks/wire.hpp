// The wire between claims and masters: formats their commands, alone or in a call for several
// (frame.hpp), in the variant that each master has, and gives each reply to the claims of its call.
// It learns from a reply what that shows of the server, and whether a grant of it is a vote.
//
// A command of a broken connection is treated as one whose reply nobody will see.

#pragma once

#include "audience.hpp"
#include "claim.hpp"
#include "core/base/pool.hpp"
#include "core/base/validity.hpp"
#include "core/bytes/command.hpp"
#include "core/masters/masters.hpp"
#include "core/masters/settings.hpp"
#include "frame.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace redlock::core {

/// What follows from the replies.
class wire_events {
public:
    /// The answer of a master to a command of a claim. `unreachable`: its connection broke before.
    virtual void answered(claim& owner, const told& from, const answer& got) = 0;
    /// The master has removed the keys of all these locks of one call.
    virtual void removed(const told& from, std::span<const frame::item> locks) = 0;
    /// The reply decides nothing yet: the command must be repeated in another variant. `alone`: in
    /// a call of its own, because one for several locks was refused.
    virtual void again(claim& owner, const told& from, bool alone) = 0;
    /// A reply has changed which masters may vote.
    virtual void voters_changed(const admission_change& change, time_point now) = 0;

protected:
    ~wire_events() = default;
};

class wire final : receiver {
public:
    wire(const settings& rules, masters& masters, pool<claim>& claims, wire_events& events)
        : rules_(rules),
          masters_(masters),
          claims_(claims),
          events_(events) {}
    wire(const wire&) = delete;
    wire& operator=(const wire&) = delete;

    /// \name Bytes
    /// \{
    void send(
        std::size_t master,
        std::initializer_list<std::string_view> arguments,
        const sent_command& what,
        time_point now);
    /// Something was queued on a connection.
    void write_soon() noexcept { wants_write_ = true; }
    /// Whether output may have been queued since the last call.
    bool wants_write() noexcept { return std::exchange(wants_write_, false); }
    /// The bytes to be written, with all commands that were queued.
    std::string& output(std::size_t link) {
        if (!frames_.empty()) {
            flush();
        }
        return masters_.output(link);
    }
    void flush();
    /// \}

    /// \name Commands of a claim
    /// \{
    /// To each of these masters. Exclusive locks share calls, queued until `flush`; the other forms
    /// have scripts of their own, and an acquire then follows what is queued.
    void add(claim& of, command_kind kind, master_set to, time_point now);
    /// Once more, after the master refused another variant.
    void repeat(claim& of, command_kind kind, std::size_t master, bool alone, time_point now);
    /// A mistake of the simulator: an acquire once more, whose reply is ignored.
    void repeat_unheard(claim& of, std::size_t master, time_point now);
    /// A raise or a HEAL, in a call of its own.
    void send_alone(const claim& of, command_kind kind, std::size_t master, time_point now);
    /// The removal: it follows the acquire on the same connection.
    void remove(claim& ended, master_set to, time_point now);
    /// Before the removal of a claim, which must not overtake its other commands.
    void flush_of(const claim& ended) {
        if (ended.queued_in == frames_.turn()) {
            flush();
        }
    }
    /// Drops what was not sent: the connection broke, or the master may no longer vote. A SET sent
    /// now would be certified by the memory record from after the loss.
    void drop_unsent(std::size_t master, time_point now);
    /// \}

    /// The listeners to releases.
    audience& listeners() noexcept { return audience_; }

private:
    void replied(const arrival& at, const reply* got) override;
    void usual_reply(const arrival& at, std::uint64_t locks) override;

    // wire.cpp: formats
    static bool shares_calls(const claim& of) noexcept { return of.form() == lock_form::exclusive; }
    fence fence_of(const claim& of, std::uint64_t token) const noexcept {
        return {
            token, of.fencing_ ? settings::fence_ttl(of.ttl_max_) : std::chrono::milliseconds(0)};
    }
    lock_names names_of(const claim& of);
    std::string_view channel_of(std::string_view key);
    frames::command command_for(const claim& of, command_kind kind, master_set to);
    void publish_where_heard(const claim& ended, frame::item& one, master_set to) const;
    void queue(claim& of, command_kind kind, master_set to, bool alone, time_point now);
    void send_frame(const frame& what);
    void note_sent(const frame& what, std::span<const std::uint64_t> marks);
    /// For an acquire that waits until its rollback is on the wire. Nobody waits for that of a
    /// release.
    static void keep_mark(claim& ended, std::size_t master, std::uint64_t mark) {
        if (!ended.result_wanted()) {
            ended.votes.set_removal_mark(master, mark);
        }
    }
    void send_removals(claim& ended, master_set to, time_point now);
    std::string_view write_removal(const claim& ended, command_variant how);
    void
    send_publish(const claim& ended, std::size_t master, std::string_view channel, time_point now);

    // wire_replies.cpp
    void frame_replied(const arrival& at, const reply& answered);
    void removed(const arrival& at, const frame& what);
    void each_replied(const arrival& at, const frame& what, frame_answers& all);
    void set_replied(const arrival& at, const frame& what, const reply& answered);
    void certified(const arrival& at, const frame& what, const reply& answered);
    void sets_replied(
        const arrival& at,
        const frame& what,
        std::uint64_t locks,
        const answer& got,
        std::string_view error);
    void frame_dropped(const arrival& at);
    told told_by(const arrival& at) const;
    void claim_replied(claim& owner, const told& from, const answer& read, std::string_view error);
    void dropped(claim& owner, const told& from);
    void unreachable(claim& owner, const told& from);
    void note_server(const arrival& at, const reply& answered, const answer& got);
    void note_published(const arrival& at, const frame::item& each, std::uint64_t listening);

    const settings& rules_;
    masters& masters_;
    pool<claim>& claims_;
    wire_events& events_;
    audience audience_;
    frames frames_;
    bool wants_write_ = false;
    // Buffers.
    std::string bytes_;
    std::string call_;      // for several locks
    std::string publish_;   // PUBLISH
    std::string fence_key_; // of `names_of`
    std::string channel_;   // of `channel_of`
};

} // namespace redlock::core
