// Sends the commands of claims: formats each, alone or in a call for several locks (outbox.hpp), in
// the variant that its master supports. It decides nothing: its owner says what is sent, and gets
// the replies.

#pragma once

#include "claim.hpp"
#include "core/base/pool.hpp"
#include "core/base/validity.hpp"
#include "core/bytes/command.hpp"
#include "core/bytes/form.hpp"
#include "core/masters/audience.hpp"
#include "core/masters/masters.hpp"
#include "core/masters/settings.hpp"
#include "outbox.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace redlock::core {

class sender {
public:
    /// `replies`: to the commands of claims.
    sender(
        const settings& rules,
        masters& masters,
        pool<claim>& claims,
        audience& heard,
        receiver& replies)
        : rules_(rules),
          masters_(masters),
          claims_(claims),
          audience_(heard),
          replies_(replies) {}
    sender(const sender&) = delete;
    sender& operator=(const sender&) = delete;

    /// \name Bytes
    /// \{
    std::uint64_t
    send(std::size_t master, std::string_view bytes, const sent_command& what, time_point now) {
        wants_write_ = true;
        return masters_.send(master, bytes, what, now);
    }
    void send(
        std::size_t master,
        std::initializer_list<std::string_view> arguments,
        const sent_command& what,
        time_point now);
    audience& heard() noexcept { return audience_; }
    /// Something was queued on a connection.
    void write_soon() noexcept { wants_write_ = true; }
    /// Requests a new introduction of all servers: another client may have set a longer `max_ttl`.
    void introduce_all_again(time_point now) {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            masters_.introduce_again(i, now);
        }
        write_soon();
    }
    /// Whether output may have been queued since the last call.
    bool wants_write() noexcept { return std::exchange(wants_write_, false); }
    /// The bytes to be written, with all commands that were queued.
    std::string& output(std::size_t link) {
        if (!outbox_.empty()) {
            flush();
        }
        return masters_.output(link);
    }
    /// \}

    /// \name Commands of a claim
    /// `acquire`, `extend` and `remove` may be queued until `flush`.
    /// \{
    void acquire(claim& attempt, master_set to, time_point now);
    /// In a call of its own: acquire, raise, extend or heal.
    void send_alone(
        const claim& of,
        command_kind kind,
        std::size_t master,
        std::uint16_t round,
        time_point now);
    /// Sends nothing after the deadline, nor for an older round.
    void extend(claim& lease, std::size_t master, std::uint16_t round, time_point now);
    /// All of `to` in the current round.
    void extend(claim& lease, master_set to, time_point now);
    /// Follows the acquire on the same connection.
    void remove(claim& ended, master_set to, time_point now);
    /// One command again, after the master refused another variant. `alone`: in a call of its own,
    /// because one for several locks was refused.
    void queue(claim& of, command_kind kind, master_set to, time_point now, bool alone = false);
    /// \}

    void flush();
    /// Before the removal of a claim, which must not overtake its other commands.
    void flush_of(const claim& ended) {
        if (ended.queued_in == outbox_.turn()) {
            flush();
        }
    }
    /// The calls for several locks, for their replies.
    outbox& calls() noexcept { return outbox_; }

    /// A plain SET is enough for an exclusive lock without fencing whose token stays here;
    /// everything else needs a script.
    static bool sets_natively(const claim& of) noexcept {
        return of.form == lock_form::exclusive && !of.fencing
               && (wrong::stray_transferred || !of.transferable);
    }
    /// Whether a command of this claim may share a call with those of other claims. The other forms
    /// have scripts of their own.
    bool shares_calls(const claim& of, command_kind kind) const noexcept;
    outbox::command command_for(const claim& of, command_kind kind, master_set to);

private:
    fence fence_of(const claim& of, std::uint64_t token) const noexcept {
        return {token, of.fencing ? settings::fence_ttl(of.ttl_max) : std::chrono::milliseconds(0)};
    }
    /// The fencing counters of several resources are packed in the key. Valid until the next call.
    lock_names names_of(const claim& of);
    writer_intent intent_of(const claim& attempt) const;

    /// Returns the channel on which the removal is published; empty: not published.
    std::string_view write_removal(const claim& ended, command_variant how);
    /// For an acquire that waits until its rollback is on the wire. Nobody waits for that of a
    /// release.
    static void keep_mark(claim& ended, std::size_t master, std::uint64_t mark) {
        if (!ended.ending().wanted()) {
            ended.votes.set_removal_mark(master, mark);
        }
    }
    void send_removals(claim& ended, master_set to, time_point now);
    void send_removal(
        claim& ended,
        std::size_t master,
        command_variant how,
        std::string_view channel,
        time_point now);
    void
    send_publish(const claim& ended, std::size_t master, std::string_view channel, time_point now);
    std::string_view channel_of(std::string_view key);

    void publish_where_heard(const claim& ended, batch::item& one, master_set to) const;
    void send_batch(const batch& what);
    /// `marks`: the end of the call in the stream to each master.
    void note_sent(const batch& what, std::span<const std::uint64_t> marks);

    const settings& rules_;
    masters& masters_;
    pool<claim>& claims_;
    audience& audience_;
    receiver& replies_;
    outbox outbox_;
    bool wants_write_ = false;
    // Buffers.
    std::string bytes_;
    std::string call_;      // for several locks
    std::string publish_;   // PUBLISH
    std::string fence_key_; // of `names_of`
    std::string channel_;   // of `channel_of`
};

} // namespace redlock::core
