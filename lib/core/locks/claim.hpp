// A claim: one token on the masters, from the first command that may set its key until no master
// can have it. It owns its votes and decides by itself what each reply, each break of a connection
// and each timer means. It sends nothing, calls nobody and reads no clock: it returns `steps`,
// which the engine executes.
//
// It asks (asking.cpp) until a majority has decided: an acquire, an attach to a lock that exists,
// or a local handoff, which has the lock already. With fencing the counters of a majority are then
// set to one number, the token. It is held (lease.cpp) until its holder ends it or it is lost;
// after a loss the holder may act until it ends the lease, or until the last deadline that it was
// ever shown. At last it is removed (removal.hpp) from every master that may have it.

#pragma once

#include "ballots.hpp"
#include "core/base/backoff.hpp"
#include "core/base/decisions.hpp"
#include "core/base/pool.hpp"
#include "core/base/timers.hpp"
#include "core/base/validity.hpp"
#include "core/bytes/answer.hpp"
#include "core/bytes/form.hpp"
#include "core/masters/settings.hpp"
#include "owned_key.hpp"
#include "steps.hpp"
#include "tally.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/errc.hpp>
#include <redlock/options.hpp>
#include <redlock/outcome.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::core {

/// How a claim began.
enum class claim_origin : std::uint8_t { acquire, attach, hand_off };
/// Of a claim that asks: an attach heals, and with fencing first reads the counters.
enum class asking_stage : std::uint8_t { votes, heals, reads, raises };

inline constexpr std::uint32_t all_asked = ~std::uint32_t{0};

struct asking_state {
    tally count;
    claim_origin from = claim_origin::acquire;
    asking_stage at = asking_stage::votes;
    errc why = errc::contended;
    std::uint32_t arbiter = all_asked; // the one master that was asked so far
    short_ttl min_validity{};
    std::uint64_t raise_to = 0;
    time_point began = never; // t0, or the local handoff
    time_point patience = forever;
};
struct held_state {
    bool renew = true;
    loss_reason loss = loss_reason::none;
    bool extended = false;       // the result of the last round
    bool margin_follows = false; // the ttl of the last extension
    short_ttl stop_margin{};
    time_point since = never;
    time_point deadline = never;
    time_point next_at = forever; // an open extension is given up, else the next renewal
};
struct removing_state {
    time_point decide_by = forever; // when the result is due; `forever`: nobody waits for it
    time_point retry_at = forever;
    master_set unconfirmed = 0;
    master_set in_flight = 0;
    master_set overdue = 0;
    master_set awaited = 0;   // reachable at the start, without a reply
    master_set confirmed = 0; // by a reply that was counted
    bool late = false;        // the lease had ended already: removing the key is not a release
    std::uint8_t removed = 0; // by result, the replies that confirmed it
    std::uint8_t absent = 0;  // or removed too late
    std::uint8_t foreign = 0;
    release_result result = release_result::uncertain;

    std::size_t most_alike() const noexcept { return std::max({removed, absent, foreign}); }
};

/// Commands that set a key and were in flight on a broken connection: the server may have them
/// in a buffer, and read them after those of the next connection.
struct strays {
    master_set sets = 0;      // acquires
    master_set heals = 0;     // commands that create the key again
    time_point until = never; // afterwards they are refused, or the key has expired

    /// Whether one may still set the key after a removal with this reply. An acquire sets the
    /// key once: if the removal found the key, that acquire has been executed.
    bool may_follow(std::size_t master, vote what) const noexcept {
        return ((heals | (what == vote::granted ? 0U : sets)) & set_of(master)) != 0;
    }
};
/// What few claims have.
struct particulars {
    // Of slots.
    std::string pool_key;
    std::vector<std::uint32_t> numbers; // ascending; empty: it is a lock
    time_point handed_since = never;

    std::uint64_t intent = 0; // name of the intent that the attempt announces; 0: none
    strays left_behind;

    // Of a lease.
    time_point hold_limit = forever; // the deadline is never later than this
    time_point warn_at = forever;    // report that it is held for long
    time_point kept = never;         // what earlier members have granted
    backoff renewal_delay;           // after an extension that failed
    std::vector<std::chrono::milliseconds> wanted;
};

struct acquire_call;

class claim {
public:
    claim() noexcept : asking_() {}
    claim(const claim&) = delete;
    claim& operator=(const claim&) = delete;
    ~claim() = default;

    handle<claim> self;
    timer wake;                     // from the grant to the end
    handle<acquire_call> wanted_by; // the acquire, while it asks
    ballots votes;
    std::uint32_t queued_in = 0; // `wire::turn` of its latest queued command

    /// A reply to one of its commands, or the break of its connection.
    steps answered(const told& from, const answer& got, const circumstances&);

    /// \name While it asks
    /// \{
    /// An acquire: the claim of the lock or the slots of `key`.
    void acquire(lock_form form, owned_key key, const claim_terms& wanted, const circumstances&);
    /// The lock exists if a majority has its token and extends it. `longest`: its present ttl is
    /// not known.
    void attach(
        owned_key key,
        const claim_terms& wanted,
        std::chrono::milliseconds longest,
        const circumstances&);
    /// Its holder has released it, and `next` gets it with the rest of its lease. With fencing that
    /// owner's token must be larger first: the steps of its raise; without, `won`.
    steps hand_to(handle<acquire_call> next, const claim_terms& wanted, const circumstances&);
    /// Before that: the slots of a pool, or the intent that it announces.
    void name_slots(std::string_view pool_key, std::vector<std::uint32_t> numbers) {
        need_more().pool_key = pool_key;
        more_->numbers = std::move(numbers);
    }
    void name_intent(std::uint64_t name) { need_more().intent = name; }
    /// Whether the master was not asked and has no vote yet.
    bool may_ask(std::size_t master) const noexcept {
        return votes.of[master].said == vote::pending && !votes.of[master].asked;
    }
    /// Sets the vote of a master to which no command can be sent.
    void refused(std::size_t master, vote what) noexcept {
        votes.of[master].said = what;
        asking_.count.add(what);
    }
    /// Begins its time, unless the votes so far decide against it. Returns when it is given up: at
    /// `master_timeout`, when too little validity would be left, or when its owner stops to wait.
    time_point begin(const circumstances&) noexcept;
    /// Returns the masters to ask now: only `arbiter` if it is given and has no vote yet, else all
    /// without a vote.
    master_set ask(std::size_t arbiter = nobody) noexcept;
    /// What follows from the votes so far.
    steps decide(const circumstances&);
    /// The time limit has passed, of the attempt or of the arbiter. `slow`: the masters that may
    /// still reply. Adds those that are counted as timed out to `silent`.
    steps out_of_time(master_set slow, master_set& silent, const circumstances&);
    bool attaches() const noexcept { return is_asking() && asking_.from == claim_origin::attach; }
    bool is_open() const noexcept { return asking_.count.decide() == verdict::open; }
    /// All masters were asked, not the arbiter alone.
    bool asked_all() const noexcept { return asking_.arbiter == all_asked; }
    /// Returns false in an outage. Otherwise a majority has voted, or some of it may only be slow.
    bool works(master_set slow) const noexcept;
    std::size_t granted() const noexcept { return asking_.count.granted(); }
    std::size_t refusals() const noexcept { return asking_.count.held(); }
    /// When its owner began: t0, or the local handoff.
    time_point began() const noexcept { return asking_.began; }
    time_point vote_by() const noexcept { return vote_by_; }
    /// When a raise that starts now is given up.
    time_point raised_by(const circumstances& at) const noexcept;
    /// The value to which the fencing counters are raised; 0: not known yet.
    std::uint64_t raises_to() const noexcept { return asking_.raise_to; }
    errc why() const noexcept { return asking_.why; }
    /// Until when a majority of the votes lasts, which may be `never`.
    time_point lasts_until(const circumstances& at) const noexcept {
        return votes.lasts_until(at.majority);
    }
    /// A majority has granted it: it is held until `deadline`, and never longer than `limit`.
    void hold(const acquire_options&, time_point deadline, time_point limit, const circumstances&);
    /// \}

    /// \name While it is held
    /// \{
    /// The timer: a part of what is due. Call again until it returns `later` or `stop`.
    steps due(master_set& silent, const circumstances&);
    /// HEAL can be sent to `where`: it is, to `to()`, where the key is missing. Of an attach as
    /// well.
    steps mend(master_set where, const circumstances&);
    void heals_on(std::size_t master, drift_bound drift) noexcept;
    /// Queues an extension of its holder. They run one at a time.
    void want(std::chrono::milliseconds ttl) { need_more().wanted.push_back(ttl); }
    /// The next of them, unless one is under way; 0: none.
    std::chrono::milliseconds next_wanted();
    std::size_t drop_wanted() noexcept; // returns their number
    /// Starts one. A renewal with a smaller ttl lowers that of the lease.
    void extend(std::chrono::milliseconds ttl, bool asked_for, const circumstances&);
    /// It is sent to this master. Returns false if there is nothing to extend or to heal.
    bool extends_on(std::size_t master, bool guarded) noexcept;
    /// It is not sent there.
    void skip(std::size_t master, vote instead, bool fit) noexcept {
        votes.of[master].said = instead;
        votes.of[master].found = fit ? key_state::unknown : key_state::ineligible;
    }
    /// Too few masters could be asked, or the members have changed: the round has failed.
    steps give_up_round(const circumstances& at) { return end_round(false, at); }
    /// The members have changed: the deadline stays until the new ones have counted an extension.
    void members_changed(master_set gone);
    /// An exclusive lease becomes that of a reader.
    void downgrade() noexcept { form_ = lock_form::shared; }
    steps stop(loss_reason why) noexcept {
        held_.loss = why;
        return steps::stop;
    }
    /// The holder was signalled, and may act until it ends the lease or until `believed_until`.
    void lose() noexcept { phase_ = phase::lost; }

    time_point held_since() const noexcept { return held_.since; }
    time_point deadline() const noexcept { return held_.deadline; }
    /// Until when the holder may rely on it.
    time_point held_until() const noexcept { return held_.deadline - held_.stop_margin; }
    /// Whether `max_hold` ends it before the ttl that the latest extension asked for.
    bool ends_early(drift_bound drift) const noexcept {
        return held_.deadline == hold_limit()
               && held_.deadline < guaranteed_until(extending_.sent, extending_.ttl, drift);
    }
    bool extending() const noexcept { return extending_.active; }
    bool asked_for() const noexcept { return extending_.asked_for; }
    bool extended() const noexcept { return held_.extended; }
    time_point extension_sent() const noexcept { return extending_.sent; }
    std::chrono::milliseconds extension_ttl() const noexcept { return extending_.ttl; }
    loss_reason loss() const noexcept { return held_.loss; }
    /// \}

    /// \name After its end
    /// \{
    /// The masters that may have its key.
    master_set may_be_on() const noexcept;
    /// A master that was not asked, so that nothing is removed there: `instead` is its vote.
    void not_asked(std::size_t master, vote instead);
    /// Ends it, at the holder's request or not, or rolls an attempt back. `there`: the masters that
    /// may have the key and can be reached, `away`: the others that may have it.
    void remove(master_set there, master_set away, const circumstances&);
    /// The removal was sent. Returns the masters to which it was not in flight already.
    master_set sent(master_set to) noexcept {
        return to & ~std::exchange(removing_.in_flight, removing_.in_flight | to);
    }
    /// What is known, and whether anything is left. `active`: masters whose replies may still come,
    /// until `until`.
    steps settle(master_set active, time_point until, const circumstances&);
    /// Whether the result is due, so that `settle` may put it off.
    bool result_due(time_point now) const noexcept { return now >= removing_.decide_by; }
    /// The masters to which the removal is sent again now. Drops those where the key has expired;
    /// there `last`: only a stray command could set it again.
    master_set repeats(bool& last, const circumstances&);

    bool result_wanted() const noexcept { return removing_.decide_by != forever; }
    release_result result() const noexcept { return removing_.result; }
    bool in_flight(std::size_t master) const noexcept {
        return (removing_.in_flight & set_of(master)) != 0;
    }
    /// Pending, and not in flight.
    bool unsent(std::size_t master) const noexcept { return (unsent() & set_of(master)) != 0; }
    /// It was not sent to a reachable master, because too many are in flight.
    bool waits_for_room() const noexcept { return (unsent() & ~removing_.overdue) != 0; }
    /// To how many it must be sent, besides those that get it again because of a stray command.
    std::size_t overdue() const noexcept;
    /// Its removal is published, if it may have a key. Most rollbacks are not.
    void publish() noexcept { publishes_ = publishes_ || votes.may_be_set(); }
    /// The removal also removes the intent.
    void drop_intent() noexcept { drops_intent_ = true; }
    /// It is for the intent alone, which expires at `until`.
    void only_intent(master_set on, time_point until) noexcept;
    /// A command that sets the key was lost with its connection, and may be executed until then.
    void note_stray(std::size_t master, command_kind kind, time_point until);
    /// By when the server executes such a command, by our clock, if it knows a time limit.
    time_point executed_by(command_kind kind) const noexcept;
    time_point expires_at() const noexcept { return expires_at_; }
    /// As `answered`, of a removal.
    steps removed(const told& from, vote what, const circumstances&);
    /// \}

    /// \name What it is
    /// \{
    vote said(std::size_t master) const noexcept { return votes.of[master].said; }
    void took(std::size_t master, decltype(ballot::latency) latency) noexcept {
        votes.of[master].latency = latency;
    }
    bool is_asking() const noexcept { return phase_ == phase::asking; }
    bool is_held() const noexcept { return phase_ == phase::held; }
    bool is_lost() const noexcept { return phase_ == phase::lost; }
    bool is_ending() const noexcept { return phase_ == phase::removing; }
    bool ended() const noexcept { return is_lost() || is_ending(); }
    /// Whether, and until when, a holder holds the lock or may still act on it.
    bool acts() const noexcept { return is_held() || is_lost(); }
    time_point acts_until() const noexcept { return is_lost() ? believed_until_ : deadline(); }
    /// Its secret was passed on: another process may act on it, and be late. Then it is removed
    /// only at the holder's request.
    bool left_to_expire() const noexcept { return left_to_expire_; }
    /// The largest deadline that any holder was shown.
    time_point believed_until() const noexcept { return believed_until_; }
    master_set to() const noexcept { return to_; }
    time_point next_due(time_point now) const noexcept;

    lock_form form() const noexcept { return form_; }
    bool fencing() const noexcept { return fencing_; }
    std::uint64_t fencing_token() const noexcept { return fencing_token_; }
    const owned_key& key() const noexcept { return key_; }
    std::string_view token_text() const noexcept { return key_.token(); }
    std::chrono::milliseconds ttl() const noexcept { return ttl_; }
    /// The ttl that a command of this kind asks for.
    std::chrono::milliseconds ttl_of(command_kind kind) const noexcept {
        return kind == command_kind::acquire ? asked_ttl_ : extending_.ttl;
    }
    /// t0: before the first byte was sent; then of the removal.
    time_point asked_at() const noexcept { return asked_at_; }
    /// A SET is enough for an exclusive lock without fencing whose token stays here.
    bool sets_natively() const noexcept {
        return form_ == lock_form::exclusive && !fencing_
               && (wrong::stray_transferred || !transferable_);
    }
    /// Whether a command of `epoch` may be sent: of the current one, before the deadline.
    bool may_send(command_kind kind, std::uint16_t epoch, time_point now) const noexcept;
    /// The epoch of a command of this kind that is sent now.
    std::uint16_t epoch_of(command_kind kind) const noexcept {
        return kind == command_kind::extend || kind == command_kind::heal ? extending_.round
                                                                          : handoffs_;
    }

    bool is_slot() const noexcept { return more_ != nullptr && !more_->numbers.empty(); }
    const std::vector<std::uint32_t>& slots() const noexcept { return more_->numbers; }
    /// The first of the local handoffs of these slots in a row.
    time_point& handed_since() const noexcept { return more_->handed_since; }
    /// The key of the wait queue: the lock's, or the pool's for a slot.
    std::string_view queue_key() const noexcept {
        return is_slot() ? std::string_view(more_->pool_key) : key_;
    }
    /// The form of its waiters.
    lock_form waiting_form() const noexcept {
        return is_slot() || form_ == lock_form::announced ? lock_form::exclusive : form_;
    }
    std::uint64_t intent() const noexcept { return more_ ? more_->intent : 0; }
    /// \}

    /// A mistake of the simulator: every master is taken for one that has granted.
    void believe_granted(const circumstances&) noexcept;
    /// Prepares it for reuse. Keeps buffers, and members that every new claim assigns.
    void reset();

private:
    friend class wire; // formats its commands

    enum class phase : std::uint8_t { asking, held, lost, removing };

    particulars& need_more() {
        if (!more_) {
            more_ = std::make_unique<particulars>();
        }
        return *more_;
    }
    strays left_behind() const noexcept { return more_ ? more_->left_behind : strays(); }
    time_point hold_limit() const noexcept { return more_ ? more_->hold_limit : forever; }
    time_point warn_at() const noexcept { return more_ ? more_->warn_at : forever; }
    master_set unsent() const noexcept { return removing_.unconfirmed & ~removing_.in_flight; }

    // asking.cpp
    void start_asking(claim_origin, const claim_terms&, const circumstances&);
    steps acquire_answered(const told&, const answer&, const circumstances&);
    steps attach_answered(const told&, const answer&, const circumstances&);
    steps raise_answered(const told&, const answer&, const circumstances&);
    steps read_or_raised(std::size_t master, const answer&, const circumstances&);
    steps decide_attach(const circumstances&);
    steps level(const circumstances&);
    steps level_attach(const circumstances&);
    steps failed(errc why) noexcept;
    steps raise_late(std::size_t master, const circumstances&);
    vote note_grant(std::size_t master, const answer&, const circumstances&);

    // lease.cpp
    steps extend_answered(const told&, const answer&, const circumstances&);
    steps granted_late(const told&, const answer&, const circumstances&);
    steps raised_late(const told&, const answer&, const circumstances&);
    steps move_deadline(const circumstances&);
    steps judge(const circumstances&);
    steps end_round(bool extended, const circumstances&);
    steps stop_now(const circumstances&) noexcept;
    loss_reason reason(std::size_t majority) const noexcept;
    time_point lost_at() const noexcept {
        return wrong::heal_after_deadline ? held_until() + ttl_ : held_until();
    }

    phase phase_ = phase::asking;
    lock_form form_ = lock_form::exclusive;
    bool fencing_ : 1 = false;
    bool transferable_ : 1 = false;
    bool left_to_expire_ : 1 = false;
    bool publishes_ : 1 = false;
    bool drops_intent_ : 1 = false;
    bool removal_seen_ : 1 = false; // a key was missing that the protocol had not removed
    /// Number of fenced local handoffs so far. Commands carry it, so that a reply counts only for
    /// its own attempt.
    std::uint16_t handoffs_ = 0;
    master_set to_ = 0;
    short_ttl ttl_{};
    short_ttl ttl_max_{};   // the largest of all requests
    short_ttl asked_ttl_{}; // at t0; the next owner may request another
    owned_key key_;         // of several resources: all keys, packed; with the token
    std::uint64_t fencing_token_ = 0;
    time_point asked_at_ = never;
    time_point vote_by_ = never;    // a grant after this moment comes too late
    time_point expires_at_ = never; // no master can have the key after this
    time_point believed_until_ = never;
    extension extending_; // the latest extension of a held lease
    union {               // by phase
        asking_state asking_;
        held_state held_;
        removing_state removing_;
    };
    std::unique_ptr<particulars> more_;
};

} // namespace redlock::core
