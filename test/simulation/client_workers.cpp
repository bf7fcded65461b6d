// The workers of a client: they take locks as the plan says, and tell the judge what they do.
#include "client.hpp"

#include <redlock/error.hpp>

namespace simulation {

namespace core = redlock::core;
using std::chrono::milliseconds;

namespace {

static_assert(static_cast<int>(taking::reading) == static_cast<int>(core::lock_form::shared));
static_assert(static_cast<int>(taking::all) == static_cast<int>(core::lock_form::all));

// The members of one wait queue of a client: waiters for the same keys, in the same form.
unsigned line_of(const op& what) {
    if (what.how != taking::all) {
        return what.resource;
    }
    unsigned members = 0;
    for (const unsigned each : resources_of(what)) {
        members |= 1U << each;
    }
    return 1000 + members;
}

std::string in_words(const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names) {
        out += (out.empty() ? "" : "+") + name;
    }
    return out;
}

std::string in_words(std::optional<redlock::errc> error, const char* none) {
    return error ? redlock::make_error_code(*error).message() : none;
}

} // namespace

std::vector<unsigned> resources_of(const op& what) {
    std::vector<unsigned> all = what.how == taking::all ? what.with : std::vector<unsigned>();
    all.push_back(what.resource);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

void client::plan_next(unsigned number) {
    worker& one = workers_[number];
    if (one.doing != activity::idle || one.done || (one.last && !may_take_last_)) {
        return;
    }
    const bool more = !one.last && one.next < one.ops->size();
    if (more || one.last) {
        const nanos think = one.last ? random_.between(0, ms) : (*one.ops)[one.next].think;
        later(here_.now + think, [this, number] { next_op(number); });
    }
}

void client::next_op(unsigned number) {
    worker& one = workers_[number];
    if (!running() || one.doing != activity::idle || one.done || (one.last && !may_take_last_)) {
        return;
    }
    if (one.last) {
        const op like = one.ops->empty() ? op() : one.ops->front();
        one.now = {
            .resource = like.resource,
            .wants = like.wants,
            .slots = like.slots,
            .how = like.how,
            .with = like.with,
            .ttl_ms = here_.what.ttl_limit_ms(),
            .wait_ms = -1,
            .fences = like.fences,
            .hold = ms};
    } else if (one.next < one.ops->size()) {
        one.now = (*one.ops)[one.next++];
    } else {
        return;
    }
    begin(number);
}

void client::begin(unsigned number) {
    worker& one = workers_[number];
    redlock::acquire_options options;
    options.ttl = milliseconds(one.now.ttl_ms);
    options.wait = one.now.wait_ms < 0 ? redlock::wait_for::forever()
                                       : redlock::wait_for(milliseconds(one.now.wait_ms));
    options.min_validity = milliseconds(one.now.min_validity_ms);
    options.stop_margin = milliseconds(one.now.stop_margin_ms);
    options.renew = one.now.renews;
    options.max_hold = milliseconds(one.now.max_hold_ms);
    options.fencing =
        one.now.fences && mine_.speaks == speech::guarded && one.now.how != taking::reading;
    one.doing = activity::waiting;
    ++one.cookie;
    const std::vector<unsigned> numbers = resources_of(one.now);
    std::vector<std::string> names;
    for (const unsigned each : numbers) {
        names.push_back("r" + std::to_string(each));
    }
    tell("wants {} ({}) for {} ms", in_words(names), to_string(one.now.how), one.now.ttl_ms);
    one.waits = one.now.wait_ms != 0;
    one.queues = one.waits && one.now.how != taking::reading;
    options.transferable = one.now.transferable;
    options.fifo = one.now.fifo;
    core::acquire_request request{
        .cookie = std::uint64_t{one.cookie} << 8U | number,
        .resource = names.front(),
        .options = options,
        .default_ttl = one.last,
        .form = static_cast<core::lock_form>(one.now.how),
        .resources = names,
        .slots = one.now.slots,
        .wants = one.now.wants};
    const std::string token = token_for(one);
    if (!token.empty()) {
        one.waits = one.queues = false;
        request.options.wait = redlock::wait_for::none();
        request.token = token;
        request.attaches = one.now.attaches;
    }
    if (one.queues) {
        here_.judge.joins(number_, line_of(one.now), number);
    }
    one.wanted = engine_->acquire(request, now());
    if (one.now.cancel_after != no_time) {
        later(here_.now + one.now.cancel_after, [this, number, cookie = one.cookie] {
            cancel(number, cookie);
        });
    }
    after_call();
}

// A token that the worker brings with it; empty if the attempt makes one.
std::string client::token_for(worker& one) {
    const op& wanted = one.now;
    one.attached.clear();
    one.dated = mine_.speaks == speech::guarded
                && (wanted.names_token || wanted.transferable || wanted.fences);
    if (wanted.attaches) {
        const auto left = std::ranges::find_if(here_.abandoned, [&](const abandoned_lock& each) {
            return each.resource == wanted.resource && each.speaks == mine_.speaks
                   && each.fenced == wanted.fences;
        });
        if (left == here_.abandoned.end()) {
            return {};
        }
        std::string token = std::move(left->token);
        one.attached = std::move(left->ownerships);
        one.dated = left->dated;
        here_.abandoned.erase(left);
        tell("attaches to {:.8}", token);
        net_.note_attach(token, here_.now);
        return token;
    }
    std::string token;
    for (int i = 0; wanted.names_token && i < 40; ++i) {
        token += "0123456789abcdef"[random_.below(16)];
    }
    if (wanted.names_token) {
        net_.note_attempt(token, here_.now);
    }
    return token;
}

client::worker* client::owner_of(std::uint64_t cookie) {
    worker& one = workers_[cookie & 255U];
    if (one.cookie != cookie >> 8U || one.doing != activity::waiting) {
        here_.fail(promise::sane, "an unknown acquire has a result");
        return nullptr;
    }
    return &one;
}

client::worker* client::holder_of(core::handle<core::claim> claim) {
    for (worker& one : workers_) {
        if ((one.held.open || one.held.releasing) && one.held.claim == claim) {
            return &one;
        }
    }
    return nullptr;
}

void client::acquired(const core::acquire_call& done, const core::claim& lease) {
    witness("acquired", lease.token_text(), lease.held_until().time_since_epoch().count());
    worker* const one = owner_of(done.cookie);
    if (one == nullptr) {
        return;
    }
    ++here_.count.acquired;
    const auto number = static_cast<unsigned>(one - workers_.data());
    const unsigned name = ++one->holds;
    const std::uint64_t fencing = lease.fencing_token();
    here_.count.fenced += fencing != 0 ? 1U : 0U;
    if (one->queues) {
        here_.judge.served(here_.now, number_, number);
    }
    const auto needed = std::max(done.options.min_validity, done.options.stop_margin);
    if (lease.deadline() - now() <= needed || (fencing != 0) != done.options.fencing) {
        here_.fail(promise::sane, "c{} got a lease that differs from its request", number_);
    }
    if (lease.is_slot()
        && (lease.slots().back() >= one->now.slots || lease.slots().size() != one->now.wants)) {
        here_.fail(promise::sane, "an unknown request got slots");
        return;
    }
    // A plan has locks or slots: to the judge a slot is a resource, its number says which.
    const std::vector<unsigned> held = lease.is_slot() ? lease.slots() : resources_of(one->now);
    one->doing = activity::holding;
    one->held = {
        .open = true,
        .ownerships = {},
        .claim = lease.self,
        .token = std::string(lease.token_text()),
        .dated = one->dated,
        .until = lease.held_until(),
        .until_before = lease.held_until(),
        .deadline = lease.deadline(),
        .changed = here_.now};
    net_.note_deadline(one->held.token, when(lease.deadline()));
    const nanos since = net_.note_holder(one->held.token);
    for (const std::size_t each : one->attached) {
        if (one->dated) {
            here_.judge.goes_on(here_.now, each);
        }
    }
    lets_go(std::exchange(one->attached, {}));
    std::vector<std::string> names;
    for (const unsigned each : held) {
        names.push_back("r" + std::to_string(each));
        one->held.ownerships.push_back(here_.judge.takes(
            here_.now, number_, each, fencing, end_of(one->held), one->now.how, since));
    }
    tell(
        "HOLDS {} ({}) as {:.8} until {} us, at the latest until {} us{}",
        in_words(names),
        to_string(one->now.how),
        lease.token_text(),
        when(lease.held_until()) / us,
        when(lease.deadline()) / us,
        fencing == 0 ? "" : ", token " + std::to_string(fencing));
    if (one->now.end != op::ending::keep) {
        later(here_.now + one->now.hold, [this, number, name] { end_op(number, name); });
    }
    if (one->now.downgrade_after != no_time) {
        later(here_.now + one->now.downgrade_after, [this, number, name] {
            downgrade(number, name);
        });
    }
    for (const nanos after : one->now.extend_after) {
        later(here_.now + after, [this, number, name] { extend(number, name); });
    }
    for (const nanos after : one->now.write_after) {
        for (const std::size_t each : one->held.ownerships) {
            if (fencing != 0) {
                here_.queue.push(here_.now + after, [this, each] { here_.judge.write(each); });
            }
        }
    }
}

void client::not_acquired(const core::acquire_call& done) {
    witness(
        "not acquired",
        in_words(done.outcome, "cancelled"),
        static_cast<std::int64_t>(done.cookie));
    worker* const one = owner_of(done.cookie);
    if (one == nullptr) {
        return;
    }
    here_.judge.leaves(
        number_, static_cast<unsigned>(one - workers_.data()), when(done.decided_at));
    tell("did not get r{}: {}", one->now.resource, in_words(done.outcome, "cancelled"));
    one->doing = activity::idle;
    plan_next(static_cast<unsigned>(one - workers_.data()));
}

void client::lease_changed(const core::claim& lease) {
    witness("changed", lease.token_text(), lease.held_until().time_since_epoch().count());
    worker* const one = holder_of(lease.self);
    if (one == nullptr || !one->held.open) {
        return;
    }
    hold& mine = one->held;
    if (mine.until <= now() && lease.held_until() > now()) {
        here_.fail(promise::sane, "c{} holds a lost lock again", number_);
    }
    if (mine.changed != here_.now) {
        mine.until_before = mine.until;
    }
    mine.until = lease.held_until();
    mine.deadline = std::max(mine.deadline, lease.deadline());
    mine.changed = here_.now;
    net_.note_deadline(mine.token, when(lease.deadline()));
    acts_until(mine);
    tell("holds {:.8} until {} us", lease.token_text(), when(mine.until) / us);
}

void client::lease_lost(const core::claim& lease, redlock::loss_reason reason) {
    witness("lost", lease.token_text(), static_cast<std::int64_t>(reason));
    ++here_.count.lost;
    worker* const one = holder_of(lease.self);
    if (one == nullptr || !one->held.open) {
        here_.fail(promise::sane, "an unknown lease was lost");
        return;
    }
    // If this very event moved the deadline into the past, nothing is late.
    hold& mine = one->held;
    const redlock::time_point deadline =
        mine.changed == here_.now ? std::max(mine.until, mine.until_before) : mine.until;
    const nanos late = (now() - deadline).count();
    here_.judge.loss_told(
        here_.now, number_, late > loss_tolerance ? late : 0, resumed_at_ == here_.now);
    tell(
        "LOSES {:.8}: {}, its clock shows {} us",
        lease.token_text(),
        redlock::to_string(reason),
        (now().time_since_epoch().count() - clock_base) / us);
    for (const std::size_t each : mine.ownerships) {
        here_.judge.loses(each);
    }
    ended_.push_back({mine.ownerships, mine.claim, incarnation_});
    const bool stops = here_.what.wrong == mistake::believes_until_told
                       || one->now.after_loss == op::obedience::at_once;
    if (stops) {
        lets_go(mine.ownerships);
    }
    if (stops || one->now.after_loss == op::obedience::later) {
        here_.queue.push(
            here_.now + (stops ? 0 : one->now.lingers),
            [this, which = lost_.size()] { stop(which); },
            number_);
    }
    lost_.push_back(ended_.back());
    mine.open = false;
    one->doing = activity::idle;
    one->done = one->last;
    plan_next(static_cast<unsigned>(one - workers_.data()));
}

void client::extended(const core::claim& lease, std::optional<redlock::errc> error) {
    witness("extended", lease.token_text(), error ? static_cast<std::int64_t>(*error) : 0);
    here_.count.extended += error ? 0U : 1U;
    tell("extension of {:.8}: {}", lease.token_text(), in_words(error, "done"));
}

void client::removed(const core::claim& lease, redlock::release_result result) {
    witness("removed", lease.token_text(), static_cast<std::int64_t>(result));
    worker* const one = holder_of(lease.self);
    tell("{:.8} is removed: {}", lease.token_text(), redlock::to_string(result));
    if (one != nullptr && one->held.releasing) {
        lets_go(one->held.ownerships);
        one->held.releasing = false;
    }
    const auto mine = std::ranges::find(ended_, lease.self, &ended_hold::claim);
    if (mine == ended_.end()) {
        here_.fail(promise::sane, "a lease was removed before its end");
        return;
    }
    if (result == redlock::release_result::released) {
        for (const std::size_t each : mine->ownerships) {
            here_.judge.released(here_.now, each);
        }
    }
    ended_.erase(mine);
}

void client::acts_until(const hold& mine) {
    for (const std::size_t each : mine.ownerships) {
        here_.judge.acts_until(here_.now, each, end_of(mine));
    }
}

void client::lets_go(const std::vector<std::size_t>& ownerships) {
    for (const std::size_t each : ownerships) {
        here_.judge.lets_go(here_.now, each);
    }
}

// A holder whose loss was signalled stops acting, and reports it.
void client::stop(std::size_t which) {
    if (lost_[which].ownerships.empty()) {
        return; // its process is gone
    }
    const ended_hold one = std::exchange(lost_[which], {});
    lets_go(one.ownerships);
    if (engine_ != nullptr && one.incarnation == incarnation_) {
        tell("releases a lock that it has lost");
        engine_->release(one.claim, now());
        after_call();
    }
}

void client::let_go(worker& one) {
    if (one.held.open || one.held.releasing) {
        lets_go(one.held.ownerships);
        one.held.open = one.held.releasing = false;
    }
}

void client::end_op(unsigned number, unsigned name) {
    worker& one = workers_[number];
    if (one.holds != name || !one.held.open) {
        return;
    }
    one.doing = activity::idle;
    one.done = one.last;
    const core::handle<core::claim> claim = one.held.claim;
    const bool abandons = one.now.end == op::ending::abandon;
    tell("{} r{}", abandons ? "abandons" : "releases", one.now.resource);
    if (here_.what.wrong == mistake::believes_while_releasing && !abandons) {
        one.held.open = false;
        one.held.releasing = true;
    } else if (abandons && one.now.how == taking::one && one.now.slots == 0) {
        here_.abandoned.push_back(
            {one.held.token,
             one.held.ownerships,
             one.now.resource,
             mine_.speaks,
             one.now.fences,
             one.held.dated});
        one.held.open = false;
    } else {
        let_go(one);
    }
    if (abandons) {
        engine_->abandon(claim);
    } else {
        ended_.push_back({one.held.ownerships, claim, incarnation_});
        engine_->release(claim, now());
    }
    after_call();
    plan_next(number);
}

void client::extend(unsigned number, unsigned name) {
    const worker& one = workers_[number];
    if (one.holds != name || !one.held.open) {
        return;
    }
    tell("extends by {} ms", one.now.extend_ttl_ms);
    engine_->extend(one.held.claim, milliseconds(one.now.extend_ttl_ms), now());
    after_call();
}

// From the call on it only reads.
void client::downgrade(unsigned number, unsigned name) {
    const worker& one = workers_[number];
    if (one.holds != name || !one.held.open || !engine_->may_downgrade(one.held.claim)) {
        return;
    }
    tell("downgrades r{}", one.now.resource);
    here_.judge.reads_only(one.held.ownerships.front());
    engine_->downgrade(one.held.claim, now());
    after_call();
}

void client::cancel(unsigned number, unsigned cookie) {
    const worker& one = workers_[number];
    if (one.cookie != cookie || one.doing != activity::waiting) {
        return;
    }
    tell("cancels");
    here_.judge.leaves(number_, number, here_.now);
    engine_->cancel(one.wanted, now());
    after_call();
}

// A client with another list of masters than the quorum has, or one whose quorum need not have been
// founded, may wait without limit.
bool client::may_wait_forever() const noexcept {
    const plan& what = here_.what;
    const bool whole = mine_.masters == 0 || mine_.masters == what.masters.size();
    return what.members && mine_.speaks == speech::guarded
           && (!what.founded || !whole || what.may_refuse);
}

void client::begin_finals() {
    if (may_wait_forever()) {
        crash();
        std::ranges::for_each(workers_, [](worker& one) { one.done = true; });
        return;
    }
    for (unsigned i = 0; i < workers_.size(); ++i) {
        worker& one = workers_[i];
        one.done = false;
        if (one.held.open) {
            one.now.end = op::ending::release;
            end_op(i, one.holds);
        } else if (one.doing == activity::waiting) {
            if (one.now.wait_ms < 0 && one.now.cancel_after == no_time) {
                one.now.hold = ms;
                one.now.end = op::ending::release;
            } else {
                cancel(i, one.cookie);
            }
        }
        one.last = true;
    }
}

bool client::waits() const noexcept {
    return std::ranges::count(workers_, activity::waiting, &worker::doing) > 0;
}

void client::take_last() {
    may_take_last_ = true;
    for (unsigned i = 0; running() && i < workers_.size(); ++i) {
        plan_next(i);
    }
}

bool client::finals_done() const noexcept {
    return std::ranges::all_of(workers_, &worker::done);
}

std::string client::waiting() const {
    if (engine_ == nullptr) {
        return "is not running";
    }
    return to_string(engine_->examine(now()));
}

bool client::has_closed() const noexcept {
    return engine_ == nullptr
           || (engine_->closed_down() && engine_->next_due() == core::forever && !waits()
               && std::ranges::count(links_, no_connection, &link::id) == std::ssize(links_));
}

std::string client::leftovers() const {
    if (engine_ == nullptr) {
        return {};
    }
    const redlock::metrics left = engine_->count();
    if (left.waiting == 0 && left.held == 0 && left.pending_removals == 0
        && left.subscriptions == 0) {
        return {};
    }
    return std::to_string(left.waiting) + " waiting, " + std::to_string(left.held) + " held, "
           + std::to_string(left.pending_removals) + " debts, " + std::to_string(left.subscriptions)
           + " subscriptions";
}

void client::count() {
    if (engine_ != nullptr) {
        const redlock::metrics counted = engine_->count();
        here_.count.attempts += counted.attempts;
        here_.count.local_handoffs += counted.local_handoffs;
    }
}

} // namespace simulation
