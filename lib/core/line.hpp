// The waiters of one resource in this process: first come, first served. Only the head of the line
// asks the masters; the others wait for their turn, and cost the masters nothing.

#pragma once

#include "operation.hpp"
#include "polling.hpp"
#include "pool.hpp"

#include <redlock/errc.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

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
    lock_form form = lock_form::exclusive;
    std::string key;
    handle head; // operations
    handle tail;
    std::size_t length = 0; // with the head
    handle holder;          // the lease of this process that they wait for, if there is one
    time_point handed_since = never; // the first of the local hand-overs in a row
    bool pool = false;               // for any slot of a pool
    time_point look_at =
        never;            // of a pool: when its head would have looked, had it not been served
    bool watched = false; // pushes are subscribed to
    polling polls;        // when its head tries again at the latest
    news latest;
    std::optional<errc> outcome; // of the latest attempt that asked all masters
    ballots last;                // its votes
    queue_place turn;            // for those who want the order of arrival

    void reset() {
        head = tail = holder = {};
        length = 0;
        handed_since = never;
        latest.release.clear();
        latest.heard = 0;
        latest.acted_on = latest.again = false;
        outcome.reset();
        polls.reset();
        turn.reset();
        last.of.clear();
        last.texts.clear();
    }

private:
    friend class line_table;
    std::unordered_map<std::string_view, line*>::node_type place_; // recycled with the line
};

/// All lines, by the lock's form and key.
class line_table {
public:
    /// The line for `key`, or null.
    line* find(lock_form form, std::string_view key) noexcept {
        const auto& lines = by_key_[static_cast<std::size_t>(form)];
        const auto at = lines.find(key);
        return at == lines.end() ? nullptr : at->second;
    }
    line* find(handle name) noexcept { return pool_.find(name); }

    line& create(lock_form form, std::string_view key) {
        line& made = pool_.create();
        made.form = form;
        made.key = key;
        if (form == lock_form::shared) {
            return made; // readers do not wait for each other: each has a line of its own
        }
        auto& lines = by_key_[static_cast<std::size_t>(form)];
        if (made.place_.empty()) {
            lines.emplace(made.key, &made);
        } else {
            made.place_.key() = made.key;
            made.place_.mapped() = &made;
            lines.insert(std::move(made.place_));
        }
        return made;
    }

    void destroy(line& done) {
        if (done.form != lock_form::shared) {
            done.place_ = by_key_[static_cast<std::size_t>(done.form)].extract(done.key);
        }
        pool_.destroy(done);
    }

    /// \name Lines that hear of locks under another name than their own
    /// \{
    void listen(const line& waiters, std::string_view lock_key) {
        listeners_.emplace(lock_key, waiters.self);
    }
    void unlisten(const line& waiters, std::string_view lock_key) {
        const auto [first, last] = listeners_.equal_range(std::string(lock_key));
        const auto mine =
            std::find_if(first, last, [&](const auto& one) { return one.second == waiters.self; });
        if (mine != last) {
            listeners_.erase(mine);
        }
    }
    /// \}

    /// Appends all lines that hear of that lock.
    void find_listeners(std::string_view lock_key, std::vector<line*>& out) {
        if (line* const own = find(lock_form::exclusive, lock_key);
            own != nullptr && own->watched) {
            out.push_back(own);
        }
        if (!listeners_.empty()) {
            const auto [first, last] = listeners_.equal_range(std::string(lock_key));
            for (auto one = first; one != last; ++one) {
                out.push_back(find(one->second));
            }
        }
    }

    std::size_t size() const noexcept { return pool_.size(); }

private:
    std::array<std::unordered_map<std::string_view, line*>, lock_forms> by_key_;
    std::unordered_multimap<std::string, handle> listeners_;
    pool<line> pool_;
};

} // namespace redlock::core
