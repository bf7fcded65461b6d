// What replies mean: assigns each reply to a claim, divides those to calls for several locks
// (outbox.hpp) among them, and learns from each what it shows of the server. Commands of a broken
// connection are treated as replies that nobody will see.

#pragma once

#include "core/bytes/answer.hpp"
#include "core/locks/outbox.hpp"
#include "core/masters/audience.hpp"
#include "essentials.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace redlock::core {

/// What follows from the replies.
class reply_events {
public:
    /// The answer of a master to a command of a claim. `unreachable`: its connection broke before.
    virtual void answered(claim& owner, const arrival& at, const answer& got) = 0;
    /// The master has removed the keys of all these locks of one call.
    virtual void removed(const arrival& at, std::span<const batch::item> locks) = 0;
    /// The reply decides nothing yet: the command must be repeated in another variant.
    virtual void again(claim& owner, const arrival& at, const answer& got) = 0;
    /// A reply has changed which masters may vote.
    virtual void voters_changed(const admission_change& change, time_point now) = 0;

protected:
    ~reply_events() = default;
};

class replies final : essentials, public receiver {
public:
    replies(const essentials& with, audience& heard, reply_events& events) noexcept
        : essentials(with),
          audience_(heard),
          events_(events) {}

    /// The reply to a command of a claim, or to a call for several locks.
    void replied(const arrival& at, const reply* got) override;
    void granted(const arrival& at, std::uint64_t locks) override;
    /// Drops what was not sent: the connection broke, or the master may no longer vote. A SET sent
    /// now would be certified by the memory record from after the loss.
    void drop_unsent(std::size_t master, time_point now);

private:
    void dropped(const arrival& at);
    /// An error of a server may concern the server itself.
    void notice(std::size_t master, std::string_view error, time_point now);
    void notice(std::size_t master, const answer& got, time_point now);
    void note_server(const arrival& at, const reply& answered, const answer& got);
    void
    note_listeners(const arrival& at, std::uint64_t lock, std::uint64_t count, const claim* ended);
    void note_stray(claim& owner, std::size_t master, command_kind what) const;
    void claim_replied(claim& owner, const arrival& at, const answer& read, std::string_view error);
    static void
    explain(claim& owner, std::size_t master, const answer& got, std::string_view error);
    void claim_unreachable(claim& owner, const arrival& at);

    // batch_replies.cpp
    void batch_replied(const arrival& at, const reply& answered);
    void each_replied(const arrival& at, const batch& what, batch_answers& all);
    void note_published(const arrival& at, const batch::item& each, std::uint64_t listening);
    void native_replied(const arrival& at, const batch& what, const reply& answered);
    void certified(const arrival& at, const batch& what, const reply& answered);
    void sets_replied(
        const arrival& at,
        const batch& what,
        std::uint64_t locks,
        const answer& got,
        std::string_view error);
    void batch_dropped(const arrival& at);

    audience& audience_;
    reply_events& events_;
};

} // namespace redlock::core
