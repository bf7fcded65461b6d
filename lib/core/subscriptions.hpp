// The wait queues of all resources, and their subscriptions to releases.

#pragma once

#include "form.hpp"
#include "quorum.hpp"
#include "slot_map.hpp"
#include "wait_queue.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace redlock::core {

/// All wait queues, by the lock's form and key.
class wait_queues {
public:
    /// The queue for `key`, or null.
    wait_queue* find(lock_form form, std::string_view key) noexcept {
        const auto& queues = by_key_[static_cast<std::size_t>(form)];
        const auto at = queues.find(key);
        return at == queues.end() ? nullptr : at->second;
    }
    wait_queue* find(handle name) noexcept { return pool_.find(name); }

    wait_queue& create(lock_form form, std::string_view key) {
        wait_queue& made = pool_.create();
        made.form = form;
        made.key = key;
        if (form == lock_form::shared) {
            return made; // readers do not wait for each other: each has its own queue
        }
        auto& queues = by_key_[static_cast<std::size_t>(form)];
        if (made.node_.empty()) {
            queues.emplace(made.key, &made);
        } else {
            made.node_.key() = made.key;
            made.node_.mapped() = &made;
            queues.insert(std::move(made.node_));
        }
        return made;
    }

    void destroy(wait_queue& done) {
        if (done.form != lock_form::shared) {
            done.node_ = by_key_[static_cast<std::size_t>(done.form)].extract(done.key);
        }
        pool_.destroy(done);
    }

    /// \name Queues that subscribe to other locks than their own key
    /// \{
    void listen(const wait_queue& waiters, std::string_view lock_key) {
        listeners_.emplace(lock_key, waiters.self);
    }
    void unlisten(const wait_queue& waiters, std::string_view lock_key) {
        const auto [first, last] = listeners_.equal_range(std::string(lock_key));
        const auto mine =
            std::find_if(first, last, [&](const auto& one) { return one.second == waiters.self; });
        if (mine != last) {
            listeners_.erase(mine);
        }
    }
    /// \}

    /// Appends all queues that are notified of releases of that lock.
    void find_listeners(std::string_view lock_key, std::vector<wait_queue*>& out) {
        if (wait_queue* const own = find(lock_form::exclusive, lock_key);
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
    std::array<std::unordered_map<std::string_view, wait_queue*>, lock_forms> by_key_;
    std::unordered_multimap<std::string, handle> listeners_;
    pool<wait_queue> pool_;
};

/// The waiters and listeners of the releases of each lock: subscribes to its channel while there is
/// one.
class subscriptions {
public:
    subscriptions(quorum& masters, wait_queues& queues) : masters_(masters), queues_(queues) {}

    /// For a wait queue. Returns true if a channel was subscribed already: then no confirmation
    /// follows, and a notification may have been missed.
    bool watch(wait_queue& waiters, time_point now);
    void unwatch(wait_queue& waiters, time_point now);

    /// Counts one more listener of a lock. Returns true for the first one, whose channel is
    /// subscribed by `subscribe`.
    bool listen(std::string_view lock_key);
    void subscribe(std::string_view lock_key, time_point now);
    /// Returns true for the last one.
    bool unlisten(std::string_view lock_key, time_point now);
    bool has_listener(std::string_view lock_key) const { return listened_.contains(lock_key); }

    /// The wait queues of a lock that was released. Valid until the next call of any function.
    const std::vector<wait_queue*>& waiting_for(std::string_view lock_key);

private:
    void unsubscribe_if_unused(std::string_view lock_key, time_point now);

    quorum& masters_;
    wait_queues& queues_;
    std::map<std::string, std::size_t, std::less<>> listened_; // number of listeners by lock key
    std::vector<wait_queue*> found_;
    std::string channel_;
};

} // namespace redlock::core
