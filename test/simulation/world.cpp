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
    world(const plan& what, lua_machine& lua, timeline& story);
    outcome run();

private:
    enum milestone : std::uint32_t { faults_end, finals_due, audit, close_down, last_look };

    void dispatch(const event& what);
    bool meant_for_paused(const event& what);
    bool comes_later(const fault& one, std::uint32_t number);
    void begin_fault(std::uint32_t number);
    void end_fault(std::uint32_t number);
    void boot(std::uint32_t number);
    void pass(std::uint32_t milestone);
    nanos quiet_time() const;
    template <typename F>
    void for_clients(int which, F f);
    void schedule(const fault& one, std::uint32_t number);

    surroundings here_;
    network net_;
    writes_under_way writes_;
    std::deque<client> clients_; // stable addresses
    std::map<std::uint32_t, store> snapshots_;
    bool finals_ = false;
    bool others_go_on_ = false;
    bool over_ = false;
};

world::world(const plan& what, lua_machine& lua, timeline& story)
    : here_{.what = what, .queue = {}, .judge = checker({.exclusion = what.kept, .order = what.ordered, .unique = what.unique, .bounds = what.kept && what.bounded, .passes = what.passes, .yields = what.yields ? longest_yield(what) : 0}, what.resources()), .count = {}, .story = story},
      net_(here_, lua) {
    for (unsigned i = 0; i < what.clients.size(); ++i) {
        clients_.emplace_back(i, here_, net_, writes_);
        here_.queue.push(0, event_kind::start_client, i);
    }
    for (std::uint32_t i = 0; i < what.faults.size(); ++i) {
        schedule(what.faults[i], i);
    }
    here_.queue.push(what.faults_end, event_kind::milestone, faults_end);
    if (what.attempt_within != 0) {
        here_.queue.push(0, event_kind::look, 0);
    }
}

void world::schedule(const fault& one, std::uint32_t number) {
    here_.queue.push(one.at, event_kind::fault, number);
    switch (one.kind) {
    case fault_kind::partition:
    case fault_kind::refuse:
    case fault_kind::stall:
    case fault_kind::hush:
    case fault_kind::slow_handshake:
        if (one.span != no_time) {
            here_.queue.push(one.at + one.span, event_kind::fault_over, number);
        }
        break;
    case fault_kind::evict:
        here_.queue.push(one.at + one.amount, event_kind::fault_over, number);
        here_.queue.push(one.at + one.span, event_kind::fault_over, number);
        break;
    case fault_kind::take_over:
        here_.queue.push(one.at + one.span, event_kind::boot, number);
        break;
    case fault_kind::crash:
    case fault_kind::promote:
        if (one.amount >= 0) {
            here_.queue.push(std::max<nanos>(0, one.at - one.amount), event_kind::snapshot, number);
        }
        here_.queue.push(one.at + one.span, event_kind::boot, number);
        break;
    default:
        break;
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

bool world::meant_for_paused(const event& what) {
    unsigned who = what.a;
    switch (what.kind) {
    case event_kind::arrive_back:
    case event_kind::connect:
    case event_kind::hang_up:
        who = net_.client_of(what.a);
        break;
    case event_kind::wake:
    case event_kind::flush:
    case event_kind::next_op:
    case event_kind::end_op:
    case event_kind::stop:
    case event_kind::extend:
    case event_kind::downgrade:
    case event_kind::cancel:
    case event_kind::start_client:
    case event_kind::close_client:
        break;
    default:
        return false;
    }
    if (clients_[who].paused()) {
        clients_[who].defer(what);
        return true;
    }
    return false;
}

void world::dispatch(const event& what) {
    if (meant_for_paused(what)) {
        return;
    }
    switch (what.kind) {
    case event_kind::arrive_there:
        net_.arrive_there(what.a);
        break;
    case event_kind::arrive_back:
        clients_[net_.client_of(what.a)].bytes(what.a);
        break;
    case event_kind::connect:
        if (const auto how = net_.connect(what.a); how != network::reception::nothing) {
            clients_[net_.client_of(what.a)].connected(what.a, how == network::reception::accepted);
        }
        break;
    case event_kind::hang_up:
        clients_[net_.client_of(what.a)].hung_up(what.a);
        break;
    case event_kind::wake:
        clients_[what.a].wake(what.b);
        break;
    case event_kind::flush:
        clients_[what.a].flush(what.b);
        break;
    case event_kind::resume:
        if (!clients_[what.a].paused()) {
            for (const event& missed : clients_[what.a].resume()) {
                dispatch(missed);
            }
        }
        break;
    case event_kind::start_client:
        clients_[what.a].retire();
        clients_[what.a].start();
        break;
    case event_kind::close_client:
        clients_[what.a].close();
        here_.queue.push(
            here_.now + here_.what.faults[what.b].span, event_kind::start_client, what.a);
        break;
    case event_kind::next_op:
        clients_[what.a].next_op(what.b, what.c);
        break;
    case event_kind::end_op:
        clients_[what.a].end_op(what.b, what.c);
        break;
    case event_kind::stop:
        clients_[what.a].stop(what.b);
        break;
    case event_kind::extend:
        clients_[what.a].extend(what.b, what.c);
        break;
    case event_kind::downgrade:
        clients_[what.a].downgrade(what.b, what.c);
        break;
    case event_kind::cancel:
        clients_[what.a].cancel(what.b, what.c);
        break;
    case event_kind::write:
        here_.judge.write(here_.now, writes_[what.a]);
        break;
    case event_kind::fault:
        begin_fault(what.a);
        break;
    case event_kind::fault_over:
        end_fault(what.a);
        break;
    case event_kind::snapshot:
        snapshots_[what.a] = net_.data_of(static_cast<unsigned>(here_.what.faults[what.a].master));
        break;
    case event_kind::boot:
        boot(what.a);
        break;
    case event_kind::milestone:
        pass(what.a);
        break;
    case event_kind::look:
        for_clients(-1, [](client& who, unsigned) { who.look_for_idle_waiters(); });
        here_.queue.push(here_.now + look_period, event_kind::look, 0);
        break;
    }
}

// Not while a command is in flight. A reply that was true when it was given may be false when it is
// counted, and a key that is deleted in between may be another owner's for a moment unseen. Nor
// during an acquire: its SET may come after the deletion of what had kept it out.
bool world::comes_later(const fault& one, std::uint32_t number) {
    if (one.kind != fault_kind::remove_keys || !here_.what.yields) {
        return false;
    }
    bool busy = false;
    for_clients(-1, [&](const client&, unsigned i) { busy = busy || !net_.quiet(i); });
    if (busy && here_.now < here_.what.faults_end - 50 * ms) {
        here_.queue.push(here_.now + 200 * us, event_kind::fault, number);
    }
    return busy;
}

void world::begin_fault(std::uint32_t number) {
    const fault& one = here_.what.faults[number];
    if (comes_later(one, number)) {
        return;
    }
    ++here_.count.faults[static_cast<std::size_t>(one.kind)];
    if (here_.story) {
        here_.story.note(
            here_.now,
            "FAULT",
            std::string(to_string(one.kind))
                + (one.client < 0 ? "" : " c" + std::to_string(one.client))
                + (one.master < 0 ? "" : " m" + std::to_string(one.master))
                + (one.only ? " " + std::string(to_string(*one.only)) : "") + " "
                + std::to_string(one.amount)
                + (one.span == no_time
                       ? " without end"
                       : " until " + std::to_string((one.at + one.span) / us) + " us"));
    }
    switch (one.kind) {
    case fault_kind::partition:
        net_.partition(one, true);
        break;
    case fault_kind::refuse:
        net_.refuse(one, true);
        break;
    case fault_kind::break_late:
    case fault_kind::break_lost:
        net_.break_connections(one);
        break;
    case fault_kind::stall:
        net_.stall(one.master, true);
        break;
    case fault_kind::crash:
    case fault_kind::promote:
    case fault_kind::take_over:
        net_.crash(static_cast<unsigned>(one.master));
        break;
    case fault_kind::flush:
        net_.say(one.master, {"FLUSHALL"});
        break;
    case fault_kind::flush_db:
        net_.say(one.master, {"FLUSHDB"});
        break;
    case fault_kind::forget_words:
        net_.say(one.master, {"SCRIPT", "FLUSH"});
        break;
    case fault_kind::reset_stats:
        net_.say(one.master, {"CONFIG", "RESETSTAT"});
        break;
    case fault_kind::reload:
        net_.say(one.master, {"DEBUG", "RELOAD"});
        break;
    case fault_kind::remove_keys:
        net_.remove_keys(one.master, one.amount);
        break;
    case fault_kind::hush:
        net_.hush(one.master, true);
        break;
    case fault_kind::evict:
        net_.let_evict(one.master, true);
        break;
    case fault_kind::slow_handshake:
        net_.slow_handshakes(one, true);
        break;
    case fault_kind::deafen: {
        fault ended = one;
        ended.only = wire::pushes;
        net_.refuse(ended, true);
        net_.break_connections(ended);
        break;
    }
    case fault_kind::replace:
        net_.replace(static_cast<unsigned>(one.master), static_cast<unsigned>(one.amount));
        break;
    case fault_kind::step:
        net_.step(one.master, one.amount);
        break;
    case fault_kind::pause:
    case fault_kind::suspend:
        for_clients(one.client, [&](client& who, unsigned) {
            who.pause(one.at + one.span, one.kind == fault_kind::suspend);
        });
        break;
    case fault_kind::client_crash:
        for_clients(one.client, [&](client& who, unsigned i) {
            who.crash();
            here_.queue.push(one.at + one.span, event_kind::start_client, i);
        });
        break;
    case fault_kind::client_close:
        for_clients(one.client, [&](client&, unsigned i) {
            here_.queue.push(here_.now, event_kind::close_client, i, number);
        });
        break;
    }
}

void world::end_fault(std::uint32_t number) {
    const fault& one = here_.what.faults[number];
    switch (one.kind) {
    case fault_kind::partition:
        net_.partition(one, false);
        break;
    case fault_kind::refuse:
        net_.refuse(one, false);
        break;
    case fault_kind::stall:
        net_.stall(one.master, false);
        break;
    case fault_kind::hush:
        net_.hush(one.master, false);
        break;
    case fault_kind::slow_handshake:
        net_.slow_handshakes(one, false);
        break;
    case fault_kind::evict:
        net_.evict(one.master);
        net_.let_evict(one.master, here_.now < one.at + one.span);
        break;
    default:
        break;
    }
}

void world::boot(std::uint32_t number) {
    const fault& one = here_.what.faults[number];
    std::optional<store> data;
    if (const auto found = snapshots_.find(number); found != snapshots_.end()) {
        data = std::move(found->second);
    }
    const auto master = static_cast<unsigned>(one.master);
    if (one.kind == fault_kind::take_over) {
        net_.take_over(master);
    } else if (one.kind == fault_kind::promote) {
        net_.promote(master, data ? *std::move(data) : store{});
    } else {
        net_.boot(master, std::move(data));
    }
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

void world::pass(std::uint32_t which) {
    switch (which) {
    case faults_end:
        if (here_.story) {
            here_.story.note(
                here_.now,
                "",
                "no more faults: each waiter gets its lock, and each other worker acquires once "
                "more");
        }
        finals_ = true;
        for_clients(-1, [](client& who, unsigned) { who.begin_finals(); });
        here_.queue.push(here_.now + here_.what.progress_bound, event_kind::milestone, finals_due);
        break;
    case finals_due:
        if (finals_) {
            for_clients(-1, [&](client& who, unsigned i) {
                if (!who.finals_done()) {
                    here_.judge.fail(
                        promise::progress,
                        here_.now,
                        "c" + std::to_string(i) + " still waits for its lock: " + who.waiting());
                }
            });
        }
        break;
    case audit:
        for_clients(-1, [&](client& who, unsigned i) {
            if (const std::string left = who.leftovers(); !left.empty()) {
                here_.judge.fail(
                    promise::progress,
                    here_.now,
                    "c" + std::to_string(i) + " has not released everything: " + left);
            }
        });
        for (const std::string& key : net_.lock_keys()) {
            if (!here_.what.bounded) {
                break;
            }
            here_.judge.fail(promise::no_orphan, here_.now, key + " was not removed");
        }
        here_.queue.push(here_.now, event_kind::milestone, close_down);
        break;
    case close_down:
        for_clients(-1, [](client& who, unsigned) { who.close(); });
        here_.queue.push(
            here_.now + (here_.what.master_timeout_ms + 10) * ms, event_kind::milestone, last_look);
        break;
    case last_look:
        for_clients(-1, [&](client& who, unsigned i) {
            if (!who.has_closed()) {
                here_.judge.fail(
                    promise::progress, here_.now, "c" + std::to_string(i) + " does not close");
            }
            who.add_to(here_.count);
        });
        over_ = true;
        break;
    default:
        break;
    }
}

outcome world::run() {
    std::uint64_t events = 0;
    std::uint64_t at_once = 0;
    while (!over_ && !here_.judge.found() && !here_.queue.empty()) {
        const event what = here_.queue.pop();
        at_once = what.at == here_.now ? at_once + 1 : 0;
        here_.now = what.at;
        if (++events > events_max || at_once > events_at_once_max) {
            here_.judge.fail(promise::sane, here_.now, "virtual time does not advance");
            break;
        }
        try {
            dispatch(what);
        } catch (const std::exception& error) {
            here_.judge.fail(promise::sane, here_.now, error.what());
        }
        // Only a release of its own client wakes a waiter that has missed a notification.
        if (finals_ && !others_go_on_) {
            bool waits = false;
            for_clients(-1, [&](client& who, unsigned) { waits = waits || who.waits(); });
            if (!waits) {
                others_go_on_ = true;
                for_clients(-1, [](client& who, unsigned) { who.take_last(); });
            }
        }
        if (finals_) {
            bool done = true;
            for_clients(-1, [&](client& who, unsigned) { done = done && who.finals_done(); });
            if (done) {
                finals_ = false;
                here_.queue.push(here_.now + quiet_time(), event_kind::milestone, audit);
            }
        }
    }
    here_.count.seeds = 1;
    here_.count.simulated = here_.now;
    here_.count.events = events;
    here_.count.overlaps = here_.judge.overlaps();
    here_.count.inversions = here_.judge.inversions();
    here_.count.writes = here_.judge.accepted_writes();
    here_.count.refused_writes = here_.judge.refused_writes();
    here_.count.violations = here_.judge.found() ? 1 : 0;
    return {here_.judge.found(), here_.count, {}};
}

} // namespace

outcome run(const plan& what, lua_machine& lua, bool with_story) {
    timeline story(with_story);
    world made(what, lua, story);
    outcome ended = made.run();
    ended.story = story.text();
    return ended;
}

} // namespace simulation
