// The commands that were queued in one turn of the event loop and can share a call: acquires,
// removals and extensions of exclusive locks. Each kind is sent to a master as one call with up to
// `frame::locks_max` locks: a script with a status per lock in its reply, or for acquires without
// fencing a SET per lock.
//
// All masters get the same locks in a call, so keys and tokens are formatted once. Only the last
// arguments differ: what the script checks of its master, or publishes on it.
//
// Order: removals leave before acquires, so a new owner does not meet the key of the one before,
// and acquires before extensions. A removal must not overtake the acquire of its own claim. If that
// acquire was queued in the same turn, the owner flushes first.
//
// This type collects and formats. Its owner sends, and passes on the replies.

#pragma once

#include "core/base/pool.hpp"
#include "core/base/validity.hpp"
#include "core/bytes/command.hpp"

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core {

class claim;

/// What the locks of a call have in common.
struct call_terms {
    command_kind kind = command_kind::acquire;
    bool native = false;                   // one SET per lock, each with its own reply
    std::chrono::milliseconds fence_ttl{}; // 0: without fencing
    std::chrono::milliseconds ttl{};
    master_set to = 0;

    friend bool operator==(const call_terms&, const call_terms&) = default;
};

/// One call to several masters, for one lock or several.
struct frame : call_terms {
    static constexpr std::size_t locks_max = 64;

    struct item {
        handle<core::claim> claim;
        std::uint16_t epoch = 0;  // as `sent_command::epoch`
        master_set publishes = 0; // where the removal notifies waiters
        std::uint64_t lock = 0;   // then, the hash of its key
    };

    handle<frame> self;
    time_point by_first = forever; // earliest deadline: the masters refuse the call afterwards
    time_point by_last = never;
    std::size_t awaited = 0; // masters without a reply
    bool alone = false;      // no other lock joins it
    std::uint32_t text = 0;  // place of its arguments in `frames`, until it is sent
    std::vector<item> items;

    bool has_counters() const noexcept { return fence_ttl.count() != 0; }
    /// The rest is assigned when it is used again.
    void reset() {
        by_first = forever;
        by_last = never;
        items.clear();
    }
};

class frames {
public:
    /// One command to one or several masters.
    struct command : call_terms {
        lock_names names;
        std::uint64_t token = 0; // the fencing token, of a removal or an extension
        time_point by = forever; // the masters refuse it afterwards
        frame::item item;
    };

    bool empty() const noexcept { return open_.empty(); }
    /// Whether a frame is full.
    bool full() const noexcept { return full_; }
    /// Identifies the commands that were added since the last flush. Never 0.
    std::uint32_t turn() const noexcept { return turn_; }
    time_point added_at() const noexcept { return added_at_; }

    /// `alone`: in a call of its own.
    void add(const command& what, bool alone, time_point now);
    struct unsent {
        command_kind kind;
        frame::item item;
    };
    /// Removes the queued commands for a master that is down, and returns them. With `native`, only
    /// native acquires: for a master that is up but may not vote, where no script refuses them.
    std::vector<unsent> drop(std::size_t master, bool native);

    /// Calls `send` for each frame of this turn, in order. It is kept until `done` for each of the
    /// masters in `frame::to`.
    template <typename Send>
    void flush(Send send) {
        if (open_.empty()) {
            return;
        }
        turn_ += turn_ + 1 == 0 ? 2U : 1U;
        full_ = false;
        sending_.swap(open_);
        for (const command_kind kind :
             {command_kind::remove, command_kind::acquire, command_kind::extend}) {
            for (const handle<frame> name : sending_) {
                frame* const one = frames_.find(name); // null: sent with an earlier kind
                if (one != nullptr && one->kind == kind) {
                    one->awaited = static_cast<std::size_t>(std::popcount(one->to));
                    one->awaited > 0 ? send(*one) : frames_.destroy(*one);
                }
            }
        }
        sending_.clear();
    }
    /// Formats the call. The last arguments differ between masters: what is checked
    /// of one, or published on it. Without `record`, as in the plain protocol, an extension checks
    /// nothing. `first` is that of an acquire with fencing.
    void write(
        std::string& out,
        const frame& what,
        command_variant how,
        std::string_view record,
        first_counter first) const;
    /// The last argument of a removal: what it publishes on that master.
    static void write_publishes(std::string& out, const frame& what, std::size_t master);

    frame* find(handle<frame> name) noexcept { return frames_.find(name); }
    /// One master has replied, or never will.
    void done(frame& one) {
        if (--one.awaited == 0) {
            frames_.destroy(one);
        }
    }

private:
    // The formatted arguments of each lock of a frame; of a native one, its commands. Not in the
    // frame: very many may be in flight.
    struct arguments {
        argument_buffer keys;
        argument_buffer tokens;
        argument_buffer counters;
        std::string set_end; // for this ttl
        std::chrono::milliseconds set_ttl{0};
    };

    frame& frame_for(const command& what, bool alone, time_point now);

    pool<frame> frames_;
    std::vector<handle<frame>> open_; // of this turn
    std::vector<arguments> texts_;    // of the calls in `open_`, in that order; the rest is spare
    std::vector<handle<frame>> sending_;
    std::uint32_t turn_ = 1;
    bool full_ = false;
    time_point added_at_ = never;
};

} // namespace redlock::core
