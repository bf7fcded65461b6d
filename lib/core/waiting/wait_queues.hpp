// The wait queues of all resources, and their subscriptions to releases.

#pragma once

#include "core/base/pool.hpp"
#include "core/bytes/form.hpp"
#include "core/masters/masters.hpp"
#include "wait_queue.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace redlock::core {

/// All wait queues, by the lock's form and key. Subscribes to the channel of a lock while it has
/// waiters or listeners.
class wait_queues {
public:
    explicit wait_queues(masters& masters) : masters_(masters) {}

    /// The queue for `key`, or null.
    wait_queue* find(lock_form form, std::string_view key) noexcept {
        const auto& queues = by_key_[static_cast<std::size_t>(form)];
        const auto at = queues.find(key);
        return at == queues.end() ? nullptr : at->second;
    }
    wait_queue* find(handle<wait_queue> name) noexcept { return pool_.find(name); }
    wait_queue* find(std::uint32_t index) noexcept { return pool_.find(index); }

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

    /// \name Subscriptions
    /// \{
    /// For a wait queue. Returns true if a channel was subscribed already: then no confirmation
    /// follows, and a notification may have been missed.
    bool watch(wait_queue& waiters, time_point now);
    void unwatch(wait_queue& waiters, time_point now);
    /// Counts one more listener of a lock. Returns true for the first one, whose channel is
    /// subscribed by `subscribe`.
    bool listen(std::string_view lock_key) { return listened_[std::string(lock_key)]++ == 0; }
    void subscribe(std::string_view lock_key, time_point now);
    void unlisten(std::string_view lock_key, time_point now);
    bool has_listener(std::string_view lock_key) const { return listened_.contains(lock_key); }

    /// The wait queues of a lock that was released. Valid until the next call of any function.
    const std::vector<wait_queue*>& waiting_for(std::string_view lock_key) {
        found_.clear();
        find_watching(lock_key);
        return found_;
    }
    /// \}

private:
    void find_watching(std::string_view lock_key);
    void unsubscribe_if_unused(std::string_view lock_key, time_point now);

    masters& masters_;
    std::array<std::unordered_map<std::string_view, wait_queue*>, lock_forms> by_key_;
    pool<wait_queue> pool_;
    std::unordered_multimap<std::string, handle<wait_queue>>
        watching_;                                             // other locks than their own key
    std::map<std::string, std::size_t, std::less<>> listened_; // number of listeners by lock key
    std::vector<wait_queue*> found_;
    std::string channel_;
};

} // namespace redlock::core
