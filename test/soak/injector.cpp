#include "injector.hpp"

#include <algorithm>
#include <numeric>

namespace redlock::soak {

injector::injector(site& where, std::uint64_t seed, std::function<void(const std::string&)> say)
    : site_(where),
      random_(seed),
      say_(std::move(say)),
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
    auto soonest = clock::time_point::max();
    for (auto* const group : {&masters_, &workers_}) {
        for (target& one : *group) {
            if (one.mend && now >= one.until) {
                end(one);
            }
            if (one.mend) {
                soonest = std::min(soonest, one.until);
            }
        }
    }
    if (now >= next_) {
        inject();
        next_ = clock::now() + between(50, 500);
    }
    return std::min(soonest, next_);
}

void injector::mend_all() {
    for (auto* const group : {&masters_, &workers_}) {
        for (target& one : *group) {
            if (one.mend) {
                end(one);
            }
        }
    }
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
    const std::string on = "master " + std::to_string(which);
    switch (pick(site_.has_network() ? 9 : 6)) {
    case 0:
        begin(whom, between(0, 1'000), "master killed, restarted", on, [this, which] {
            site_.restart_master(which, false);
        });
        site_.master(which).kill();
        break;
    case 1:
        begin(whom, between(0, 1'000), "master killed, restarted empty", on, [this, which] {
            site_.restart_master(which, true);
        });
        site_.master(which).kill();
        break;
    case 2:
        begin(whom, between(20, 2'000), "master hung", on, [this, which] {
            site_.master(which).resume();
        });
        site_.master(which).hang();
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

// One way or the other, from some of the workers.
void injector::cut_off(std::size_t master) {
    std::vector<std::size_t> some;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        if (pick(2) == 0) {
            some.push_back(site_.host_of_worker(i));
        }
    }
    const std::string on = "master " + std::to_string(master);
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
    const std::string on = "worker " + std::to_string(which);
    switch (pick(4)) {
    case 0:
        begin(whom, between(0, 500), "worker killed", on, [this, which] {
            site_.start_worker(which);
        });
        site_.kill_worker(which);
        break;
    case 1:
        begin(whom, between(10, 200), "worker stopped for a moment", on, [this, which] {
            site_.worker(which).resume();
        });
        site_.worker(which).stop();
        break;
    default:
        begin(whom, between(700, 2'000), "worker stopped past its lease", on, [this, which] {
            site_.worker(which).resume();
        });
        site_.worker(which).stop();
        break;
    }
}

void injector::begin(
    target& whom,
    milliseconds lasts,
    const std::string& kind,
    const std::string& on,
    std::function<void()> mend) {
    count(kind, on + " for " + std::to_string(lasts.count()) + " ms");
    whom.until = clock::now() + lasts;
    whom.mend = std::move(mend);
}

void injector::count(const std::string& kind, const std::string& on) {
    ++done_[kind];
    say_(kind + ": " + on);
}

void injector::end(target& whom) {
    const auto mend = std::exchange(whom.mend, nullptr);
    mend();
}

} // namespace redlock::soak
