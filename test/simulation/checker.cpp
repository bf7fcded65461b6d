#include "checker.hpp"

#include <algorithm>
#include <array>

namespace simulation {

std::string_view to_string(promise what) noexcept {
    static constexpr std::array<std::string_view, 10> names{
        "exclusion",
        "order",
        "no-orphan",
        "loss-signalled",
        "progress",
        "sane",
        "turn",
        "truth",
        "attempt",
        "passes"};
    return names[static_cast<std::size_t>(what)];
}

std::size_t checker::takes(
    nanos now,
    unsigned client,
    unsigned resource,
    std::uint64_t fencing,
    nanos until,
    taking how,
    std::optional<nanos> since) {
    const std::size_t number = ownerships_.size();
    ownerships_.push_back({client, resource, fencing, until, how, now, since.value_or(now)});
    resource_state& state = resources_[resource];
    state.actors.push_back(number);
    if (fencing != 0) {
        if (wanted_.order && fencing <= state.largest_token) {
            const std::uint64_t before = state.largest_token;
            fail(promise::order, now, "c{} got token {} after {}", client, fencing, before);
        }
        for (std::size_t i = 0; wanted_.unique && i < number; ++i) {
            const ownership& other = ownerships_[i];
            if (other.resource == resource && other.fencing == fencing) {
                fail(promise::order, now, "c{} got token {} of c{}", client, fencing, other.client);
            }
        }
        state.largest_token = std::max(state.largest_token, fencing);
    }
    look(now, resource);
    pass_over(now, client, resource);
    return number;
}

void checker::pass_over(nanos now, unsigned client, unsigned resource) {
    for (waiter& one : waiters_) {
        if (one.resource != resource) {
            continue;
        }
        one.passed = one.client == client ? 0 : one.passed + 1;
        if (wanted_.passes != 0 && one.passed > wanted_.passes) {
            fail(promise::passes, now, "c{} was passed over {} times", one.client, one.passed);
        }
    }
}

void checker::acts_until(nanos now, std::size_t number, nanos until) {
    ownership& one = ownerships_[number];
    const std::vector<std::size_t>& actors = resources_[one.resource].actors;
    if (one.until <= now && until > now && std::ranges::find(actors, number) != actors.end()) {
        fail(promise::sane, now, "c{} acts again on a lease that had ended", one.client);
    }
    if (wanted_.yields != 0 && one.overtaken != no_time && until > one.until
        && until - wanted_.yields > one.overtaken) {
        fail(
            promise::exclusion,
            now,
            "c{} is extended, but another owner has had resource {} since {} us",
            one.client,
            one.resource,
            one.overtaken / us);
    }
    one.until = until;
    look(now, one.resource);
}

void checker::lets_go(nanos now, std::size_t number) {
    ownerships_[number].until = std::min(ownerships_[number].until, now);
    std::erase(resources_[ownerships_[number].resource].actors, number);
}

void checker::released(nanos now, std::size_t number) {
    const ownership& one = ownerships_[number];
    if (one.lost) {
        fail(promise::truth, now, "c{} has released a lost lock", one.client);
    }
    require_none_since(now, number, one.until, "has released");
}

void checker::goes_on(nanos now, std::size_t number) {
    require_none_since(now, number, no_time, "goes on with");
}

// Nobody else has had the lock since this ownership, up to that moment.
void checker::require_none_since(
    nanos now, std::size_t number, nanos until, std::string_view does) {
    const ownership& one = ownerships_[number];
    for (std::size_t i = number + 1; wanted_.exclusion && i < ownerships_.size(); ++i) {
        const ownership& other = ownerships_[i];
        if (other.resource == one.resource && other.began < until && !may_meet(one, other)) {
            fail(
                promise::truth,
                now,
                "c{} {} resource {}, but c{} has had it since",
                one.client,
                does,
                one.resource,
                other.client);
        }
    }
}

// Readers may meet each other, and nobody else.
bool checker::may_meet(const ownership& a, const ownership& b) noexcept {
    return a.how == taking::reading && b.how == taking::reading;
}

// Holders begin or are extended at events only, so two overlap at an event if they overlap at all.
void checker::look(nanos now, unsigned resource) {
    const std::vector<std::size_t>& actors = resources_[resource].actors;
    for (std::size_t i = 0; i < actors.size(); ++i) {
        ownership& one = ownerships_[actors[i]];
        for (std::size_t j = 0; j < i && one.until > now; ++j) {
            ownership& other = ownerships_[actors[j]];
            if (other.until <= now || may_meet(one, other)) {
                continue;
            }
            ++overlaps_;
            ownership& older = one.keys_since < other.keys_since ? one : other;
            const ownership& newer = &older == &one ? other : one;
            older.overtaken = std::min(older.overtaken, std::max(older.began, newer.began));
            if (wanted_.exclusion) {
                fail(
                    promise::exclusion,
                    now,
                    "c{} and c{} both act as holders of resource {}",
                    other.client,
                    one.client,
                    resource);
            }
        }
    }
}

void checker::joins(unsigned client, unsigned resource, unsigned number) {
    waiters_.push_back({client, resource, number});
}

void checker::served(nanos now, unsigned client, unsigned number) {
    end_wait(client, number, now);
    const auto mine = std::ranges::find_if(
        waiters_, [&](const waiter& one) { return one.client == client && one.number == number; });
    if (mine == waiters_.end()) {
        return;
    }
    const unsigned resource = mine->resource;
    for (auto one = waiters_.begin(); one != mine; ++one) {
        if (one->client == client && one->resource == resource) {
            one->overtaken = std::min(one->overtaken, now);
        }
    }
    waiters_.erase(mine);
}

void checker::leaves(unsigned client, unsigned number, nanos decided) {
    end_wait(client, number, decided);
    std::erase_if(
        waiters_, [&](const waiter& one) { return one.client == client && one.number == number; });
}

void checker::all_leave(unsigned client) {
    std::erase_if(waiters_, [&](const waiter& one) { return one.client == client; });
}

// A waiter that has given up is overtaken by right, and may learn so only later.
void checker::end_wait(unsigned client, unsigned number, nanos until) {
    for (const waiter& one : waiters_) {
        if (one.client == client && one.number == number && one.overtaken < until) {
            fail(promise::turn, until, "waiter {} of c{} was overtaken", number, client);
        }
    }
}

void checker::write(std::size_t number) {
    const ownership& writer = ownerships_[number];
    resource_state& state = resources_[writer.resource];
    if (writer.fencing < state.stored_token) {
        ++refused_;
        return;
    }
    ++accepted_;
    state.stored_token = writer.fencing;
    inversions_ += number + 1 < state.stored_owner ? 1U : 0U; // not if tokens are in order
    state.stored_owner = std::max(state.stored_owner, number + 1);
}

void checker::key_stays(nanos now, unsigned master, nanos until, nanos bound) {
    if (wanted_.bounds && until > bound) {
        const nanos by = until == no_time ? no_time : (until - bound) / us;
        fail(promise::no_orphan, now, "a key on m{} outlives its bound by {} us", master, by);
    }
}

void checker::loss_told(nanos now, unsigned client, nanos late, bool was_paused) {
    if (late > 0 && !was_paused) {
        fail(promise::loss_told, now, "c{} is signalled a loss {} us late", client, late / us);
    }
}

} // namespace simulation
