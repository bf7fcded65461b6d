// What the engine does differently for locks of several resources, readers and writers.

#include "engine.hpp"
#include "keys.hpp"
#include "lock_keys.hpp"

#include <array>
#include <cstring>

namespace redlock::core {

void engine::name_keys(operation& wanted, const acquire_request& request) const {
    wanted.form = request.form;
    if (request.form == lock_form::all) {
        assign_keys_of(wanted.key, rules_.key_prefix, request.resources);
        return;
    }
    wanted.slots = request.slots;
    wanted.wants = request.wants;
    if (wanted.slots != 0) {
        wanted.search = std::make_unique<slot_search>(wanted.slots, wanted.wants);
        assign_pool_key(wanted.key, rules_.key_prefix, request.resource);
    } else {
        assign_lock_key(wanted.key, rules_.key_prefix, request.resource);
    }
}

// A writer draws the name of its intent with its first attempt.
void engine::name_intent(operation& wanted) {
    if (wanted.form == lock_form::writer && wanted.intent == 0
        && wanted.wait_until > wanted.began) {
        std::array<unsigned char, sizeof wanted.intent> bytes{};
        host_.random(bytes);
        std::memcpy(&wanted.intent, bytes.data(), bytes.size());
    }
}

// When a writer stops waiting, its intent is removed together with the rollback of its last
// attempt. Between two attempts there is no rollback, so one is made for the intent alone. On a
// master that is down the intent expires.
void engine::drop_intent(operation& wanted, time_point now) {
    if (wanted.intent == 0) {
        return;
    }
    claim& last = new_claim(wanted, now);
    wanted.intent = 0;
    wanted.attempt = last.self;
    last.drops_intent = true;
    last.expires_at = later(now, rules_.intent_lease());
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        last.votes.of[i].asked = masters_[i].link->up();
    }
    removals_.begin(last, now);
}

bool engine::writes(handle name) const {
    const claim* const lease = claims_.find(name);
    return lease != nullptr && lease->is_held() && lease->form == lock_form::writer;
}

// From now on the lease counts as a reader's, whatever the masters reply. Each master converts the
// key at the next extension, of which the first is sent now. Until then the writer's key counts as
// the reader's vote, because it also excludes other writers.
void engine::downgrade(handle name, time_point now) {
    if (!writes(name)) {
        return; // its end has been reported
    }
    claim& lease = *claims_.find(name);
    wake_queue(lease, now); // other writers have to ask
    if (wait_queue* const writers = queues_.find(lease.form, lease.key)) {
        writers->forget(); // this token is published again when the reader releases
    }
    lease.form = lock_form::shared;
    leases_.extend(lease, lease.ttl, now);
}

} // namespace redlock::core
