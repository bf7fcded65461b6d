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
      next_(clock::now()) {
    for (std::size_t i = 0; i < site_.masters(); ++i) {
        targets_.push_back({"master " + master_name(i), {}, {}});
    }
    for (std::size_t i = 0; i < site_.workers(); ++i) {
        targets_.push_back({"worker " + worker_name(i), {}, {}});
    }
}

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
    for (const target& one : targets_) {
        soonest = one.mend ? std::min(soonest, one.until) : soonest;
    }
    return soonest;
}

void injector::mend_all() {
    mend([](const target&) { return true; });
}

void injector::mend(const std::function<bool(const target&)>& is_over) {
    for (target& one : targets_) {
        if (one.mend && is_over(one)) {
            std::exchange(one.mend, nullptr)();
            events_.seen(one.name + ": the fault is over");
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
    plan_ = site_.masters() >= 5 ? overlapping : in_turn;
    victim_ = pick(site_.masters());
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
            hang_master((victim_ + 1) % site_.masters(), share(now.lasts));
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
    stop_worker(*which, past_lease, site_.pace().ttl * 3 / 2);
    return true;
}

void injector::inject() {
    if (pick(3) == 0) {
        // Half of the time the worker that seems to have the lock.
        const std::size_t any = pick(site_.workers());
        hurt_worker(pick(2) == 0 ? site_.holder().value_or(any) : any);
        return;
    }
    // Now and then two at once, and so in time a majority.
    const std::size_t victims = pick(6) == 0 ? 2 : 1;
    for (std::size_t i = 0; i < victims; ++i) {
        hurt_master(pick(site_.masters()));
    }
}

void injector::hurt_master(std::size_t which) {
    target& whom = master(which);
    if (whom.mend) {
        return;
    }
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
        count("FLUSHALL", whom.name);
        site_.tell_master(which, {"FLUSHALL"});
        break;
    case 4:
        count("SCRIPT FLUSH", whom.name);
        site_.tell_master(which, {"SCRIPT", "FLUSH"});
        break;
    case 5:
        count("connections dropped", whom.name);
        site_.tell_master(which, {"CLIENT", "KILL", "TYPE", "normal"});
        break;
    case 6:
        begin(whom, between(50, 2'000), "cable pulled", [this, which] {
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
        master(which),
        lasts,
        empty ? "master killed, restarted empty" : "master killed, restarted",
        [this, which, empty] { site_.restart_master(which, empty); });
    site_.master(which).kill();
}

void injector::hang_master(std::size_t which, milliseconds lasts) {
    begin(master(which), lasts, "master hung", [this, which] { site_.master(which).resume(); });
    site_.master(which).hang();
}

// One way or the other, from some of the workers.
void injector::cut_off(std::size_t which) {
    std::vector<std::size_t> some;
    for (std::size_t i = 0; i < site_.workers(); ++i) {
        if (pick(2) == 0) {
            some.push_back(site_.host_of_worker(i));
        }
    }
    if (pick(2) == 0) {
        begin(master(which), between(50, 2'000), "answers lost one way", [this, which, some] {
            site_.network().mend(which, some);
        });
        site_.network().cut(which, some);
        return;
    }
    begin(master(which), between(50, 2'000), "requests lost one way", [this, which, some] {
        for (const std::size_t host : some) {
            site_.network().mend(host, {which});
        }
    });
    for (const std::size_t host : some) {
        site_.network().cut(host, {which});
    }
}

void injector::hurt_worker(std::size_t which) {
    target& whom = worker(which);
    if (whom.mend) {
        return;
    }
    switch (pick(4)) {
    case 0:
        begin(whom, between(0, 500), "worker killed", [this, which] { site_.start_worker(which); });
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
    begin(worker(which), lasts, kind, [this, which] { site_.worker(which).resume(); });
    site_.worker(which).stop();
}

void injector::begin(
    target& whom, milliseconds lasts, const std::string& kind, std::function<void()> mend) {
    count(kind, whom.name + " for " + std::to_string(lasts.count()) + " ms");
    whom.until = clock::now() + lasts;
    whom.mend = std::move(mend);
}

void injector::count(const std::string& kind, const std::string& on) {
    ++done_[kind];
    events_.injected(kind + ": " + on);
}

} // namespace redlock::soak
