#include "engine.hpp"

#include "masters_report.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace redlock::core {

namespace {

std::uint64_t seed_from(engine_callbacks& outside) {
    std::array<unsigned char, sizeof(std::uint64_t)> bytes{};
    outside.random(bytes);
    std::uint64_t seed = 0;
    std::memcpy(&seed, bytes.data(), sizeof seed);
    return seed;
}

} // namespace

engine::engine(settings rules, engine_callbacks& outside)
    : rules_(std::move(rules)),
      host_(outside),
      random_(seed_from(outside)),
      masters_(rules_, *this, *this, random_),
      replies_(essentials_, audience_, *this),
      sender_(rules_, masters_, claims_, audience_, replies_),
      acquires_(essentials_, attempts_, waiting_, scans_, leases_, removals_),
      holders_(essentials_, acquires_, waiting_, leases_, removals_) {}

engine::~engine() = default;

void engine::start(time_point now) {
    assert(life_ == life::created);
    life_ = life::running;
    masters_.start(now);
}

void engine::close(time_point now) {
    if (closing()) {
        return;
    }
    const bool ran = life_ == life::running;
    life_ = life::closing;
    close_by_ = ran ? later(now, rules_.master_timeout) : now;
    acquires_.close(now);
    claims_.for_each([&](claim& lease) {
        if (lease.is_held()) {
            holders_.lose_if(lease, loss_reason::closed, now);
        }
    });
    queries_.end_all();
    scans_.end_all(); // only status queries are left
    finish_closing(now);
}

// Closing ends when every holder has ended its lease and every sent removal has a reply, or after
// `master_timeout` without progress. A lease that its holder has not ended stays until its ttl: its
// code may still run.
void engine::finish_closing(time_point now) {
    if (life_ != life::closing || (now < close_by_ && waits_to_close())) {
        return;
    }
    life_ = life::closed;
    close_by_ = forever;
    removals_.stop();
    acquires_.end_finished(forever);
    masters_.stop("the manager was closed", now);
    claims_.for_each([&](claim& ended) {
        if (ended.acts() || (ended.is_ending() && ended.ending().wanted())) {
            host_.removed(ended, release_result::uncertain);
        }
        timers_.cancel(ended.wake);
        claims_.destroy(ended);
    });
    host_.closed();
}

void engine::opened(std::size_t link, time_point now) {
    masters_.opened(link, now);
    sender_.write_soon();
}

void engine::closed(std::size_t link, std::string_view why, time_point now) {
    masters_.closed(link, why, now);
    if (link >= size()) {
        notifications_changed(now);
    }
    end_of_event(now);
}

void engine::received(std::size_t link, std::span<const char> bytes, time_point now) {
    masters_.received(link, bytes, now);
    if (link >= size()) {
        notifications_changed(now);
    }
    // The connection may have queued commands of its own, such as a handshake.
    if (!masters_.output(link).empty()) {
        sender_.write_soon();
    }
    end_of_event(now);
}

void engine::written(std::size_t link, std::size_t bytes, time_point now) {
    if (link < size()) {
        masters_[link].link->written(bytes, now);
        end_of_event(now);
    }
}

void engine::end_of_event(time_point now) {
    if (acquires_.finishing()) {
        acquires_.end_finished(now);
    }
    finish_closing(now);
}

time_point engine::next_due() const noexcept {
    return std::min({timers_.next(), masters_.next_due(), removals_.next_due(), close_by_});
}

void engine::time_passed(time_point now) {
    const std::size_t stepped = masters_.judge_steps(now);
    if (stepped > 1) {
        log_.clocks_stepped(stepped);
    }
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        voters_changed(masters_.time_passed(i, now), now);
    }
    notifications_changed(now);
    // The rest stays due: `next_due` reports it, and other work of the event loop runs in between.
    std::size_t fired = 0;
    std::size_t looks = 16 * rules_.turn_max; // at a timer that was moved, a look costs little
    for (; fired < rules_.turn_max && looks > 0 && timers_.next() <= now; --looks) {
        if (const timer* const due = timers_.pop(now)) {
            fire(*due, now);
            ++fired;
        }
    }
    removals_.time_passed(now);
    end_of_event(now);
    masters_.refresh_due();
    sender_.write_soon(); // PING, INFO
}

void engine::fire(const timer& due, time_point now) {
    switch (due.owner) {
    case timer_owner::operation:
        acquires_.due(due.subject, now);
        break;
    case timer_owner::query:
        queries_.due(due.subject);
        break;
    case timer_owner::slot_scan:
        scans_.due(due.subject);
        break;
    case timer_owner::claim:
        if (claim* const owner = claims_.find(due.subject)) {
            if (owner->is_held()) {
                holders_.lose_if(*owner, leases_.due(*owner, now), now);
            } else if (owner->is_lost()) {
                holders_.end_lost(*owner, now);
            } else if (owner->is_ending()) {
                removals_.due(*owner, now);
            }
        }
        break;
    }
}

void engine::release(handle name, time_point now) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->acts()) {
        return; // its removal has started
    }
    if (lease->is_lost()) {
        closing_moved(now);
    }
    holders_.release(*lease, now);
    finish_closing(now);
}

bool engine::abandon(handle name) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->acts()) {
        return false;
    }
    holders_.abandon(*lease);
    if (life_ == life::closing && !waits_to_close()) {
        close_by_ = never; // the next event ends the closing
    }
    return true;
}

void engine::extend(handle name, std::chrono::milliseconds ttl, time_point now) {
    claim* const lease = claims_.find(name);
    if (lease != nullptr && lease->is_held()) { // else its end has been reported
        leases_.extend(*lease, ttl, now);
    }
}

std::vector<master_vote> engine::describe(const ballots& votes, time_point now) const {
    return core::describe(votes, rules_, masters_, now);
}

metrics engine::count() const {
    metrics out = core::count(counters_, claims_, rules_, masters_);
    out.waiting = acquires_.size();
    return out;
}

std::chrono::milliseconds engine::ttl_limit() const {
    return masters_.ttl_limit();
}

void engine::look_at_limit(time_point now) {
    if (life_ == life::running) {
        sender_.introduce_all_again(now);
    }
}

health engine::examine(time_point now) const {
    return core::examine(rules_, masters_, running(), now);
}

void engine::cancel(handle acquire, time_point now) {
    acquires_.cancel(acquire, now);
    end_of_event(now);
}

bool engine::writes(handle name) const {
    const claim* const lease = claims_.find(name);
    return lease != nullptr && lease->is_held() && lease->form == lock_form::writer;
}

void engine::downgrade(handle name, time_point now) {
    if (writes(name)) { // else its end has been reported
        holders_.downgrade(*claims_.find(name), now);
    }
}

} // namespace redlock::core
