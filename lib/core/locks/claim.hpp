// A claim: begins as an attempt to acquire a lock, becomes a lease when a majority grants it, and
// ends as removals. Each removal is pending until its master has confirmed it, or until the key
// must have expired there. A local handoff with fencing is a new attempt of the same claim, and
// increments `handoffs`. So a reply never counts for another attempt.
//
// A lost lease is not removed yet: its holder may act until it ends the lease, or until the last
// deadline that it was ever shown.

#pragma once

#include "attempt.hpp"
#include "claim_record.hpp"
#include "core/base/pool.hpp"
#include "core/base/timers.hpp"
#include "lease.hpp"
#include "removal.hpp"

#include <cassert>
#include <utility>
#include <variant>

namespace redlock::core {

class claim : public claim_record {
public:
    handle self;
    timer wake;

    /// \name The current phase
    /// \{
    bool is_asking() const noexcept { return is<attempt>(); }
    bool is_held() const noexcept { return is<lease>(); }
    /// The holder was signalled, and may act until it ends the lease or until `believed_until`.
    bool is_lost() const noexcept { return is<loss>(); }
    bool is_ending() const noexcept { return is<removal>(); }

    void ask(const attempt& how) { phase_.emplace<attempt>(how); }
    void hold(lease&& how) { phase_.emplace<lease>(std::move(how)); }
    void lose() { phase_.emplace<loss>(); }
    void end(const removal& how) { phase_.emplace<removal>(how); }

    /// Each requires its phase.
    attempt& asking() noexcept { return get<attempt>(); }
    const attempt& asking() const noexcept { return get<attempt>(); }
    lease& held() noexcept { return get<lease>(); }
    const lease& held() const noexcept { return get<lease>(); }
    removal& ending() noexcept { return get<removal>(); }
    const removal& ending() const noexcept { return get<removal>(); }
    /// \}

    /// Until when the holder may act, unless it ends the lease earlier.
    time_point acts_until() const noexcept {
        return is_lost() ? believed_until : held().deadline();
    }
    /// Whether a holder holds the lock or may still act on it.
    bool acts() const noexcept { return is_held() || is_lost(); }
    bool ended() const noexcept { return is_lost() || is_ending(); }

    void reset() {
        claim_record::reset();
        queued_in = 0;
        phase_.emplace<attempt>();
    }

private:
    struct loss {};
    template <typename Phase>
    bool is() const noexcept {
        return std::holds_alternative<Phase>(phase_);
    }

    template <typename Phase>
    Phase& get() noexcept {
        assert(is<Phase>());
        return *std::get_if<Phase>(&phase_);
    }
    template <typename Phase>
    const Phase& get() const noexcept {
        assert(is<Phase>());
        return *std::get_if<Phase>(&phase_);
    }

    [[no_unique_address]] std::variant<attempt, lease, loss, removal> phase_;

public:
    std::uint32_t queued_in = 0; // `outbox::turn` of its latest queued command; in the padding
};

} // namespace redlock::core
