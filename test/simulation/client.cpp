#include "client.hpp"

#include "core/bytes/keys.hpp"
#include "core/masters/membership.hpp"

#include <redlock/error.hpp>

namespace simulation {

namespace core = redlock::core;
using std::chrono::milliseconds;

client::client(unsigned number, surroundings& here, network& net)
    : number_(number),
      here_(here),
      net_(net),
      mine_(here.what.clients[number]),
      random_(here.what.seed, 3000 + number),
      clock_(clock_base, mine_.rate_ppb) {
    for (const std::vector<op>& ops : mine_.workers) {
        workers_.emplace_back().ops = &ops;
    }
}

core::settings client::settings() const {
    const plan& what = here_.what;
    const bool right = mine_.corrected && incarnation_ > 1;
    const std::size_t masters = mine_.masters == 0 || right ? what.masters.size() : mine_.masters;
    core::settings rules = redlock::test::settings_for(masters);
    rules.protocol =
        mine_.speaks == speech::guarded ? redlock::protocol::guarded : redlock::protocol::plain;
    if (what.members && mine_.speaks == speech::guarded) {
        rules.members = rules.names;
        rules.replaces = mine_.replaces;
        for (std::string& name : rules.members) {
            name.front() = mine_.respelled && !right ? 'n' : name.front();
        }
    }
    rules.record_key = core::record_key(rules.key_prefix);
    rules.founding_max_ttl = milliseconds(mine_.max_ttl_ms);
    rules.max_ttl =
        rules.members.empty() || !mine_.takes_recorded ? rules.founding_max_ttl : milliseconds(0);
    rules.drift = {static_cast<double>(what.drift_ppb) / 1e9, milliseconds(what.drift_margin_ms)};
    rules.clock_offset_bound = milliseconds(what.offset_bound_ms);
    rules.quarantine = what.wrong != mistake::no_quarantine;
    rules.connect_timeout = milliseconds(what.connect_timeout_ms);
    rules.master_timeout = milliseconds(what.master_timeout_ms);
    rules.reconnect_delay_min = milliseconds(5);
    rules.reconnect_delay_max = milliseconds(100);
    rules.health_check_interval = milliseconds(what.health_check_ms);
    rules.fitness_interval = milliseconds(100); // as in production, with leases that short
    rules.retry_delay_min = milliseconds(4);
    rules.retry_delay_max = milliseconds(100);
    rules.pushes = mine_.pushes;
    if (!what.polls) {
        rules.poll_limit = std::chrono::hours(1);
    }
    rules.local_handoff_time = milliseconds(mine_.local_handoff_ms);
    return rules;
}

// The change of the members that this client makes.
std::optional<core::member_change> client::change() const {
    if (!here_.what.members || mine_.speaks != speech::guarded || mine_.change.empty()) {
        return std::nullopt;
    }
    const std::string what = mine_.change.substr(1);
    return mine_.change.front() == '='
               ? core::member_change{false, {}, milliseconds(std::stoll(what))}
               : core::member_change{mine_.change.front() == '+', what, {}};
}

nanos client::when(redlock::time_point moment) const noexcept {
    const nanos shown = moment.time_since_epoch().count();
    return moment == core::forever ? no_time : clock_.when(shown) + stopped_;
}

// Until when, in true time, a holder goes on that does not let go.
nanos client::end_of(const hold& mine) const noexcept {
    return here_.what.wrong == mistake::believes_until_told ? no_time : when(mine.deadline);
}

void client::witness(std::string_view report, std::string_view of, std::int64_t value) {
    here_.witness(here_.now, number_, report);
    here_.witness(value, number_, of);
}

void client::start() {
    if (engine_ != nullptr && engine_->closing()) {
        drop_engine();
    } else {
        crash(); // if the one before is still there
    }
    ++incarnation_;
    flush_planned_ = false;
    wake_planned_ = no_time;
    make_engine(settings());
    tell("starts");
    if (const auto wanted = change()) {
        engine_->change_members(wanted, now());
    }
    engine_->start(now());
    after_call();
    for (unsigned i = 0; i < workers_.size(); ++i) {
        plan_next(i);
    }
}

void client::crash() {
    if (engine_ == nullptr) {
        return;
    }
    tell("crashes");
    for (ended_hold& one : lost_) { // their numbers stay, as events name them
        lets_go(std::exchange(one.ownerships, {}));
    }
    drop_engine();
    deferred_.clear();
}

void client::drop_engine() {
    for (worker& one : workers_) {
        let_go(one);
        one.doing = activity::idle;
    }
    here_.judge.all_leave(number_);
    for (std::size_t i = 0; i < links_.size(); ++i) {
        close(i);
    }
    count();
    engine_.reset();
    ended_.clear();
    ++incarnation_;
}

void client::close() {
    if (engine_ != nullptr && !engine_->closing()) {
        tell("closes");
        engine_->close(now());
        after_call();
    }
}

void client::pause(nanos until, bool suspends) {
    tell("is {} until {} us", suspends ? "suspended" : "paused", until / us);
    if (suspends && here_.what.wrong == mistake::monotonic_clock && !paused()) {
        stopped_ += until - here_.now;
        for (const worker& one : workers_) {
            if (one.held.open) {
                acts_until(one.held);
            }
        }
    }
    paused_until_ = std::max(paused_until_, until);
    here_.queue.push(paused_until_, [this] { resume(); });
}

// Deferred events happen in random order.
void client::resume() {
    if (paused()) {
        return;
    }
    resumed_at_ = here_.now;
    std::vector<event> missed = std::exchange(deferred_, {});
    for (std::size_t i = missed.size(); i > 1; --i) {
        std::swap(missed[i - 1], missed[random_.below(i)]);
    }
    tell("goes on");
    for (const event& each : missed) {
        each.happens();
    }
}

// The engine was called: what it wants is planned.
void client::after_call() {
    look_for_untold_losses();
    if (engine_->wants_write() && !flush_planned_) {
        flush_planned_ = true;
        later(here_.now + random_.between(0, here_.what.air.flush_max), [this] { flush(); });
    }
    for (std::size_t i = 0; !flush_planned_ && i < links_.size(); ++i) {
        if (!engine_->output(i).empty()) {
            here_.fail(
                promise::sane,
                "c{} has bytes for {} and did not request a write",
                number_,
                name_of(i));
        }
    }
    const redlock::time_point due = engine_->next_due();
    if (due != core::forever) {
        const nanos at = std::max(here_.now, when(due));
        if (at < wake_planned_) {
            wake_planned_ = at;
            later(at, [this] { wake(); });
        }
    }
}

void client::wake() {
    if (here_.now < wake_planned_) {
        return; // another one was planned instead, which must not grow into two
    }
    wake_planned_ = no_time;
    if (engine_->next_due() <= now()) {
        engine_->time_passed(now());
    }
    after_call();
}

void client::flush() {
    flush_planned_ = false;
    for (std::size_t i = 0; i < links_.size(); ++i) {
        if (links_[i].up && !engine_->output(i).empty()) {
            write(i, [&](std::string bytes) { net_.send(links_[i].id, std::move(bytes)); });
        }
    }
    after_call();
}

void client::connected(unsigned place, bool accepted) {
    accepted ? link_opened(place) : link_closed(place, "connection refused");
    after_call();
}

void client::arrived(unsigned place, std::string bytes) {
    engine_->received(place, bytes, now());
    after_call();
}

void client::hung_up(unsigned place) {
    tell("finds the connection to {} closed", name_of(place));
    link_closed(place, "connection reset by peer");
    after_call();
}

void client::open(std::size_t link) {
    const std::size_t masters = links_.size() / 2;
    links_[link].id = net_.open(
        *this,
        number_,
        static_cast<unsigned>(link),
        static_cast<unsigned>(link % masters),
        link < masters ? wire::commands : wire::pushes);
}

void client::close(std::size_t link) {
    if (links_[link].id != no_connection) {
        net_.leave(std::exchange(links_[link], {}).id);
    }
}

std::string client::name_of(std::size_t place) const {
    const std::size_t masters = links_.size() / 2;
    return "m" + std::to_string(place % masters) + (place < masters ? "" : ", for pushes,");
}

// Not those of a pause: whatever is due is reported when the process continues.
void client::look_for_untold_losses() {
    for (const worker& one : workers_) {
        const nanos late = one.held.open ? (now() - one.held.until).count() : 0;
        if (late > loss_tolerance) {
            here_.judge.loss_told(here_.now, number_, late, resumed_at_ == here_.now);
        }
    }
}

std::vector<std::string> client::keys_of(const op& what) const {
    std::vector<std::string> keys;
    const std::string pool = "p:{r" + std::to_string(what.resource) + "}:slot:";
    for (unsigned i = 0; i < what.slots; ++i) {
        keys.push_back(pool + std::to_string(i));
    }
    if (what.slots == 0) {
        for (const unsigned each : resources_of(what)) {
            keys.push_back("p:{r" + std::to_string(each) + "}");
        }
    }
    return keys;
}

// Free: a majority of all masters, of those that vote by what this client knows, has no key of it.
bool client::is_free(const op& what, const redlock::health& seen) const {
    const std::vector<std::string> keys = keys_of(what);
    const auto found = std::ranges::count_if(keys, [&](const std::string& key) {
        std::size_t free = 0;
        for (std::size_t i = 0; i < seen.masters.size(); ++i) {
            free += seen.masters[i].state == redlock::master_state::admitted
                            && net_.is_free(static_cast<unsigned>(i), key, what.how)
                        ? 1U
                        : 0U;
        }
        return free >= seen.quorum;
    });
    return static_cast<std::size_t>(found) >= (what.slots == 0 ? keys.size() : what.wants);
}

// Where there is an order between processes, nothing is said.
void client::look_for_idle_waiters() {
    const bool looks = running() && !paused() && engine_->ready();
    const redlock::health seen = looks ? engine_->examine(now()) : redlock::health();
    for (worker& one : workers_) {
        if (!looks || one.doing != activity::waiting || !one.waits || one.now.fifo
            || !is_free(one.now, seen)) {
            one.idle_since = here_.now;
            continue;
        }
        for (const std::string& key : keys_of(one.now)) {
            one.idle_since = std::max(one.idle_since, net_.asked_at(number_, key));
        }
        if (here_.now - one.idle_since > here_.what.attempt_within) {
            here_.fail(
                promise::attempt,
                "c{} has not tried to acquire the free lock {} since {} us",
                number_,
                one.now.resource,
                one.idle_since / us);
        }
    }
}

} // namespace simulation
