#include "world.hpp"

#include "client.hpp"
#include "network.hpp"

#include <deque>
#include <stdexcept>

namespace simulation {

namespace {

// More in one run, or at one moment, means that there is no progress of any kind.
constexpr std::uint64_t events_max = 2'000'000;
constexpr std::uint64_t events_at_once_max = 20'000;

constexpr nanos look_period = 100 * ms;

// For how long commands that were in flight may extend a holder after it was overtaken.
nanos longest_yield(const plan& what) {
    const nanos one = (what.max_ttl_ms() + what.master_timeout_ms + 2 * what.drift_margin_ms) * ms;
    return one + one / 1'000'000 * what.drift_ppb / 500;
}

class world {
public:
    world(const plan& what, lua_machine& lua, figures& count, std::string* story);
    std::optional<violation> run();

private:
    void dispatch(event what);
    void schedule(const fault& one);
    bool comes_later(const fault& one);
    void begin(const fault& one);
    void look();
    void look_at_finals();
    nanos quiet_time() const;
    void begin_finals();
    void require_finals();
    void audit();
    void close_down();
    void last_look();
    template <typename F>
    void for_clients(int which, F f);

    surroundings here_;
    network net_;
    std::deque<client> clients_; // stable addresses
    std::map<const fault*, store> snapshots_;
    bool finals_ = false;
    bool others_go_on_ = false;
    bool over_ = false;
};

checker::demands demands_of(const plan& what) {
    return {
        .exclusion = what.kept,
        .order = what.ordered,
        .unique = what.unique,
        .bounds = what.kept && what.bounded,
        .passes = what.passes,
        .yields = what.yields ? longest_yield(what) : 0};
}

world::world(const plan& what, lua_machine& lua, figures& count, std::string* story)
    : here_{what, count, story, checker(demands_of(what), what.resources())},
      net_(here_, lua) {
    for (unsigned i = 0; i < what.clients.size(); ++i) {
        client& made = clients_.emplace_back(i, here_, net_);
        here_.queue.push(
            0, [&made] { made.start(); }, i);
    }
    for (const fault& one : what.faults) {
        schedule(one);
    }
    here_.queue.push(what.faults_end, [this] { begin_finals(); });
    if (what.attempt_within != 0) {
        here_.queue.push(0, [this] { look(); });
    }
}

template <typename F>
void world::for_clients(int which, F f) {
    for (unsigned i = 0; i < clients_.size(); ++i) {
        if (which < 0 || static_cast<unsigned>(which) == i) {
            f(clients_[i], i);
        }
    }
}

void world::schedule(const fault& one) {
    here_.queue.push(one.at, [this, &one] { begin(one); });
    const auto ends_after = [&](nanos span) {
        here_.queue.push(one.at + span, [this, &one] { net_.change(one, false); });
    };
    switch (one.kind) {
    case fault_kind::partition:
    case fault_kind::refuse:
    case fault_kind::stall:
    case fault_kind::hush:
    case fault_kind::slow_handshake:
        if (one.span != no_time) {
            ends_after(one.span);
        }
        break;
    case fault_kind::evict:
        ends_after(one.amount);
        ends_after(one.span);
        break;
    case fault_kind::crash:
    case fault_kind::promote:
        if (one.amount >= 0) {
            here_.queue.push(std::max<nanos>(0, one.at - one.amount), [this, &one] {
                snapshots_[&one] = net_.data_of(one.master);
            });
        }
        [[fallthrough]];
    case fault_kind::take_over:
        here_.queue.push(
            one.at + one.span, [this, &one] { net_.boot(one, std::move(snapshots_[&one])); });
        break;
    default:
        break;
    }
}

void world::dispatch(event what) {
    if (what.client != nobody && clients_[what.client].paused()) {
        clients_[what.client].defer(std::move(what));
    } else {
        what.happens();
    }
}

// Not while a command is in flight. A reply that was true when it was given may be false when it is
// counted, and a key that is deleted in between may be another owner's for a moment unseen. Nor
// during an acquire: its SET may come after the deletion of what had kept it out.
bool world::comes_later(const fault& one) {
    if (one.kind != fault_kind::remove_keys || !here_.what.yields) {
        return false;
    }
    bool busy = false;
    for_clients(-1, [&](const client&, unsigned i) { busy = busy || !net_.quiet(i); });
    if (busy && here_.now < here_.what.faults_end - 50 * ms) {
        here_.queue.push(here_.now + 200 * us, [this, &one] { begin(one); });
    }
    return busy;
}

void world::begin(const fault& one) {
    if (comes_later(one)) {
        return;
    }
    ++here_.count.faults[static_cast<std::size_t>(one.kind)];
    here_.note("FAULT", "{}", describe(one));
    switch (one.kind) {
    case fault_kind::pause:
    case fault_kind::suspend:
        for_clients(one.client, [&](client& who, unsigned) {
            who.pause(one.at + one.span, one.kind == fault_kind::suspend);
        });
        break;
    case fault_kind::client_crash:
        for_clients(one.client, [&](client& who, unsigned i) {
            who.crash();
            here_.queue.push(
                one.at + one.span, [&who] { who.start(); }, i);
        });
        break;
    case fault_kind::client_close:
        for_clients(one.client, [&](client& who, unsigned i) {
            const auto close = [this, &who, &one, i] {
                who.close();
                here_.queue.push(
                    here_.now + one.span, [&who] { who.start(); }, i);
            };
            here_.queue.push(here_.now, close, i);
        });
        break;
    default:
        net_.change(one, true);
    }
}

void world::look() {
    for_clients(-1, [](client& who, unsigned) { who.look_for_idle_waiters(); });
    here_.queue.push(here_.now + look_period, [this] { look(); });
}

// After the last faults: until nothing can be left over.
nanos world::quiet_time() const {
    const plan& what = here_.what;
    if (what.prompt) {
        // Connections that were hung are given up and made again, and debts are paid.
        return (2 * what.master_timeout_ms + what.health_check_ms + 2 * what.connect_timeout_ms
                + 400)
               * ms;
    }
    return (2 * what.max_ttl_ms() + 2 * what.master_timeout_ms + 2 * what.drift_margin_ms
            + what.connect_timeout_ms + 100)
               * ms
           // A connection that is broken and then left can be late twice.
           + 2 * what.air.late_max + 4 * what.air.slow_max;
}

void world::begin_finals() {
    here_.note(
        "", "no more faults: each waiter gets its lock, and each other worker acquires once more");
    finals_ = true;
    for_clients(-1, [](client& who, unsigned) { who.begin_finals(); });
    here_.queue.push(here_.now + here_.what.progress_bound, [this] { require_finals(); });
}

void world::require_finals() {
    for_clients(-1, [&](client& who, unsigned i) {
        if (finals_ && !who.finals_done()) {
            here_.fail(promise::progress, "c{} still waits for its lock: {}", i, who.waiting());
        }
    });
}

// Only a release of its own client wakes a waiter that has missed a notification.
void world::look_at_finals() {
    bool waits = false;
    for_clients(-1, [&](client& who, unsigned) { waits = waits || who.waits(); });
    if (!waits && !std::exchange(others_go_on_, true)) {
        for_clients(-1, [](client& who, unsigned) { who.take_last(); });
    }
    finals_ = !std::ranges::all_of(clients_, &client::finals_done);
    if (!finals_) {
        here_.queue.push(here_.now + quiet_time(), [this] { audit(); });
    }
}

void world::audit() {
    for_clients(-1, [&](client& who, unsigned i) {
        if (const std::string left = who.leftovers(); !left.empty()) {
            here_.fail(promise::progress, "c{} has not released everything: {}", i, left);
        }
    });
    for (const std::string& key : net_.lock_keys()) {
        if (here_.what.bounded) {
            here_.fail(promise::no_orphan, "{} was not removed", key);
        }
    }
    here_.queue.push(here_.now, [this] { close_down(); });
}

void world::close_down() {
    for_clients(-1, [](client& who, unsigned) { who.close(); });
    here_.queue.push(here_.now + (here_.what.master_timeout_ms + 10) * ms, [this] { last_look(); });
}

void world::last_look() {
    for_clients(-1, [&](client& who, unsigned i) {
        if (!who.has_closed()) {
            here_.fail(promise::progress, "c{} does not close", i);
        }
        who.count();
    });
    over_ = true;
}

std::optional<violation> world::run() {
    std::uint64_t events = 0;
    std::uint64_t at_once = 0;
    while (!over_ && !here_.judge.found() && !here_.queue.empty()) {
        event what = here_.queue.pop();
        at_once = what.at == here_.now ? at_once + 1 : 0;
        here_.now = what.at;
        if (++events > events_max || at_once > events_at_once_max) {
            here_.fail(promise::sane, "virtual time does not advance");
            break;
        }
        try {
            dispatch(std::move(what));
        } catch (const std::exception& error) {
            here_.fail(promise::sane, "{}", error.what());
        }
        if (finals_) {
            look_at_finals();
        }
    }
    figures& sum = here_.count;
    ++sum.seeds;
    sum.simulated += here_.now;
    sum.overlaps += here_.judge.overlaps();
    sum.inversions += here_.judge.inversions();
    sum.writes += here_.judge.accepted_writes();
    sum.refused_writes += here_.judge.refused_writes();
    sum.digest += here_.digest;
    return here_.judge.found();
}

} // namespace

outcome run(const plan& what, lua_machine& lua, figures& sum, bool with_story) {
    outcome ended;
    ended.broken = world(what, lua, sum, with_story ? &ended.story : nullptr).run();
    return ended;
}

outcome run(const plan& what, lua_machine& lua, bool with_story) {
    figures unread;
    return run(what, lua, unread, with_story);
}

} // namespace simulation
