// The waiters of one resource in this process: first come, first served. Only the head of the line
// asks the masters; the others wait for their turn, and cost the masters nothing.

#pragma once

#include "operation.hpp"
#include "pool.hpp"

#include <redlock/errc.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace redlock::core {

/// What pushes have told of one release.
struct news {
    std::string release;     // which one: each has a name of its own
    std::uint32_t heard = 0; // the masters that told of it, a bit each
    bool acted_on = false;   // an attempt came of it, or will
    bool again = false;      // it came behind a vote of the attempt that is under way
};

/// The place of a line in the queue that one master keeps for its lock.
struct queue_place {
    std::string waiter;                 // its name there; empty: none was drawn
    std::size_t keeper = claim::nobody; // the master that was asked for it
    std::uint16_t round = 0;            // answers to an older question are told from the latest's
    bool first = false;                 // as the last answer had it
    bool again = false;                 // there was news while the question was under way
    time_point renewed = never;         // the last question that was answered
    time_point refused_until = never;   // no queue is to be had

    void reset() {
        waiter.clear();
        keeper = claim::nobody;
        ++round;
        first = again = false;
        renewed = refused_until = never;
    }
};

struct line {
    handle self;
    std::string key;
    handle head; // operations
    handle tail;
    std::size_t length = 0;      // with the head
    handle holder;               // the lease of this process that they wait for, if there is one
    std::size_t handed_over = 0; // local hand-overs in a row
    bool watched = false;        // pushes are subscribed to
    news latest;
    std::optional<errc> outcome; // of the latest attempt that asked all masters
    ballots last;                // its votes
    queue_place turn;            // for those who want the order of arrival

    void reset() {
        head = tail = holder = {};
        length = handed_over = 0;
        watched = false;
        latest.release.clear();
        latest.heard = 0;
        latest.acted_on = latest.again = false;
        outcome.reset();
        turn.reset();
        last.of.clear();
        last.texts.clear();
    }

private:
    friend class line_table;
    std::unordered_map<std::string_view, line*>::node_type place_; // recycled with the line
};

/// All lines, by the lock's key.
class line_table {
public:
    /// The line for `key`, or null.
    line* find(std::string_view key) noexcept {
        const auto at = by_key_.find(key);
        return at == by_key_.end() ? nullptr : at->second;
    }
    line* find(handle name) noexcept { return pool_.find(name); }

    line& create(std::string_view key) {
        line& made = pool_.create();
        made.key = key;
        if (made.place_.empty()) {
            by_key_.emplace(made.key, &made);
        } else {
            made.place_.key() = made.key;
            made.place_.mapped() = &made;
            by_key_.insert(std::move(made.place_));
        }
        return made;
    }

    void destroy(line& done) {
        done.place_ = by_key_.extract(done.key);
        pool_.destroy(done);
    }

    std::size_t size() const noexcept { return pool_.size(); }

private:
    std::unordered_map<std::string_view, line*> by_key_;
    pool<line> pool_;
};

} // namespace redlock::core
