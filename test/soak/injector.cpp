#include "injector.hpp"

#include <algorithm>
#include <numeric>

namespace redlock::soak {
namespace {

constexpr const char* past_lease = "worker stopped past its lease";

} // namespace

injector::injector(site& where, std::uint64_t seed, timeline& events)
    : site_(where),
      random_(seed),
      events_(events),
      masters_(where.masters()),
      workers_(where.workers()),
      next_(clock::now()) {}

std::size_t injector::pick(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
}

injector::milliseconds injector::between(int from, int to) {
    return milliseconds(std::uniform_int_distribution<int>(from, to)(random_));
}

injector::clock::time_point injector::proceed() {
    const auto now = clock::now();
    mend([now](const target& one) { return now >= one.until; });
    if (now >= next_ && length_ != length_.zero()) {
        take_step();
    } else if (now >= next_) {
        inject();
        next_ = clock::now() + between(50, 500);
    }
    auto soonest = next_;
    for (const auto* const group : {&masters_, &workers_}) {
        for (const target& one : *group) {
            soonest = one.mend ? std::min(soonest, one.until) : soonest;
        }
    }
    return soonest;
}

void injector::mend_all() {
    mend([](const target&) { return true; });
}

void injector::mend(const std::function<bool(const target&)>& is_over) {
    for (auto* const group : {&masters_, &workers_}) {
        for (target& one : *group) {
            if (one.mend && is_over(one)) {
                end(one);
            }
        }
    }
}

void injector::follow_plan(clock::duration length) {
    // The killed and the hung one at the same time leave a bare majority of five. The quarantine of
    // the killed one ends while the other one still hangs.
    static constexpr step overlapping[] = {
        {0.10, 0.30, fault::kill}, {0.25, 0.45, fault::hang}, {0.50, 0, fault::freeze}};
    // Three masters can spare one, so they fail one after the other.
    static constexpr step in_turn[] = {
        {0.08, 0.14, fault::kill}, {0.50, 0, fault::freeze}, {0.65, 0.20, fault::hang}};
    plan_ = masters_.size() >= 5 ? overlapping : in_turn;
    victim_ = pick(masters_.size());
    began_ = clock::now();
    length_ = length;
    next_ = began_ + share(plan_.front().at);
}

injector::milliseconds injector::share(double part) const {
    return std::chrono::duration_cast<milliseconds>(length_ * part);
}

void injector::take_step() {
    if (!plan_.empty()) {
        const step now = plan_.front();
        if (now.what == fault::kill) {
            kill_master(victim_, true, share(now.lasts));
        } else if (now.what == fault::hang) {
            hang_master((victim_ + 1) % masters_.size(), share(now.lasts));
        } else if (!freeze_holder()) {
            next_ = clock::now() + milliseconds(3);
            return;
        }
        plan_ = plan_.subspan(1);
    }
    next_ = plan_.empty() ? clock::time_point::max() : began_ + share(plan_.front().at);
}

// Stops the worker that has the lock; it has it still when it cannot move any more.
bool injector::freeze_holder() {
    const auto which = site_.holder();
    if (!which || !site_.account_of(*which).believes()) {
        return false;
    }
    site_.worker(*which).stop();
    if (!site_.account_of(*which).believes()) {
        site_.worker(*which).resume();
        return false;
    }
    stop_worker(*which, past_lease, site_.ttl() * 3 / 2);
    return true;
}

void injector::inject() {
    if (pick(3) == 0) {
        // Half of the time the worker that seems to have the lock.
        const std::size_t any = pick(workers_.size());
        hurt_worker(pick(2) == 0 ? site_.holder().value_or(any) : any);
        return;
    }
    // Now and then two at once, and so in time a majority.
    const std::size_t victims = pick(6) == 0 ? 2 : 1;
    for (std::size_t i = 0; i < victims; ++i) {
        hurt_master(pick(masters_.size()));
    }
}

void injector::hurt_master(std::size_t which) {
    target& whom = masters_[which];
    if (whom.mend) {
        return;
    }
    const std::string on = "master " + master_name(which);
    switch (pick(site_.has_network() ? 9 : 6)) {
    case 0:
        kill_master(which, false, between(0, 1'000));
        break;
    case 1:
        kill_master(which, true, between(0, 1'000));
        break;
    case 2:
        hang_master(which, between(20, 2'000));
        break;
    case 3:
        count("FLUSHALL", on);
        site_.tell_master(which, {"FLUSHALL"});
        break;
    case 4:
        count("SCRIPT FLUSH", on);
        site_.tell_master(which, {"SCRIPT", "FLUSH"});
        break;
    case 5:
        count("connections dropped", on);
        site_.tell_master(which, {"CLIENT", "KILL", "TYPE", "normal"});
        break;
    case 6:
        begin(whom, between(50, 2'000), "cable pulled", on, [this, which] {
            site_.network().plug_in(which);
        });
        site_.network().unplug(which);
        break;
    default:
        cut_off(which);
        break;
    }
}

void injector::kill_master(std::size_t which, bool empty, milliseconds lasts) {
    begin(
        masters_[which],
        lasts,
        empty ? "master killed, restarted empty" : "master killed, restarted",
        "master " + master_name(which),
        [this, which, empty] { site_.restart_master(which, empty); });
    site_.master(which).kill();
}

void injector::hang_master(std::size_t which, milliseconds lasts) {
    begin(masters_[which], lasts, "master hung", "master " + master_name(which), [this, which] {
        site_.master(which).resume();
    });
    site_.master(which).hang();
}

// One way or the other, from some of the workers.
void injector::cut_off(std::size_t master) {
    std::vector<std::size_t> some;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        if (pick(2) == 0) {
            some.push_back(site_.host_of_worker(i));
        }
    }
    const std::string on = "master " + master_name(master);
    if (pick(2) == 0) {
        begin(
            masters_[master], between(50, 2'000), "answers lost one way", on, [this, master, some] {
                site_.network().mend(master, some);
            });
        site_.network().cut(master, some);
        return;
    }
    begin(masters_[master], between(50, 2'000), "requests lost one way", on, [this, master, some] {
        for (const std::size_t host : some) {
            site_.network().mend(host, {master});
        }
    });
    for (const std::size_t host : some) {
        site_.network().cut(host, {master});
    }
}

void injector::hurt_worker(std::size_t which) {
    target& whom = workers_[which];
    if (whom.mend) {
        return;
    }
    switch (pick(4)) {
    case 0:
        begin(
            whom, between(0, 500), "worker killed", "worker " + worker_name(which), [this, which] {
                site_.start_worker(which);
            });
        site_.kill_worker(which);
        break;
    case 1:
        stop_worker(which, "worker stopped for a moment", between(10, 200));
        break;
    default:
        stop_worker(which, past_lease, between(700, 2'000));
        break;
    }
}

void injector::stop_worker(std::size_t which, const std::string& kind, milliseconds lasts) {
    begin(workers_[which], lasts, kind, "worker " + worker_name(which), [this, which] {
        site_.worker(which).resume();
    });
    site_.worker(which).stop();
}

void injector::begin(
    target& whom,
    milliseconds lasts,
    const std::string& kind,
    const std::string& on,
    std::function<void()> mend) {
    count(kind, on + " for " + std::to_string(lasts.count()) + " ms");
    whom.on = on;
    whom.until = clock::now() + lasts;
    whom.mend = std::move(mend);
}

void injector::count(const std::string& kind, const std::string& on) {
    ++done_[kind];
    events_.injected(kind + ": " + on);
}

void injector::end(target& whom) {
    const auto mend = std::exchange(whom.mend, nullptr);
    mend();
    events_.seen(whom.on + ": the fault is over");
}

} // namespace redlock::soak
