#include "plan.hpp"

#include "worker.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <random>

namespace demo {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr int restart_attempts_max = 10;
constexpr auto freeze_time = ttl + 500ms;

// When, as a share of the run after the opening.
struct schedule {
    double kill, hang, bring_back, freeze, resume;
};
// The killed and the hung one at the same time leave a bare majority of five. The quarantine of the
// killed one ends while the other one still hangs.
constexpr schedule overlapping{0.10, 0.25, 0.40, 0.50, 0.70};
// Three masters can spare one, so they fail one after the other.
constexpr schedule in_turn{0.08, 0.65, 0.22, 0.50, 0.85};

} // namespace

plan::plan(
    masters& servers, crew& workers, observer& watcher, timeline& events, const settings& chosen)
    : masters_(servers),
      crew_(workers),
      observer_(watcher),
      timeline_(events),
      length_(chosen.seconds) {
    std::mt19937_64 random(chosen.seed);
    victim_ = random() % servers.size();
    sleeper_ = (victim_ + 1 + random() % (servers.size() - 1)) % servers.size();
}

asio::awaitable<void> plan::run() {
    timeline_.seen(fmt::format(
        "the masters are new, and could have forgotten locks: quarantined for {} s",
        std::chrono::duration<double>(max_ttl).count()));
    co_await observer_.manager().async_ready(asio::use_awaitable);
    open_.done = true;
    opened_ = timeline_.elapsed();

    const bool spare_two = masters_.size() >= 5;
    const schedule when = spare_two ? overlapping : in_turn;
    co_await until(when.kill);
    kill();
    if (spare_two) {
        co_await until(when.hang);
        hang();
    }
    co_await until(when.bring_back);
    co_await bring_back();
    co_await until(when.freeze);
    co_await freeze_worker();
    if (!spare_two) {
        co_await until(when.hang);
        hang();
    }
    co_await until(when.resume);
    resume();
}

void plan::kill() {
    masters_.kill(victim_);
    killed_.done = !masters_.running(victim_);
    timeline_.injected(fmt::format("{} killed (SIGKILL)", master_name(victim_)));
}

void plan::hang() {
    hung_.done = masters_.hang(sleeper_);
    timeline_.injected(fmt::format("{} hung (SIGSTOP)", master_name(sleeper_)));
}

void plan::resume() {
    masters_.resume(sleeper_);
    resumed_.done = hung_.done && masters_.running(sleeper_);
    timeline_.injected(fmt::format("{} resumed (SIGCONT)", master_name(sleeper_)));
}

asio::awaitable<void> plan::bring_back() {
    timeline_.injected(fmt::format("{} brought back with an empty memory", master_name(victim_)));
    for (int attempt = 0; attempt < restart_attempts_max && !back_.done; ++attempt) {
        const auto restarted = redlock::clock::now();
        masters_.restart(victim_);
        // One that cannot have its port ends at once.
        co_await pause(200ms);
        if (masters_.running(victim_)) {
            back_.done = true;
            asio::co_spawn(
                observer_.manager().get_executor(), watch_return(restarted), asio::detached);
        }
    }
}

asio::awaitable<void> plan::watch_return(redlock::time_point restarted) {
    using redlock::master_state;
    bool seen = false;
    while (state(victim_) != master_state::admitted) {
        seen = seen || state(victim_) == master_state::quarantined;
        co_await pause(20ms);
    }
    kept_out_ = redlock::clock::now() - restarted;
    quarantined_.done = seen && *kept_out_ >= max_ttl;
    readmitted_.done = true;
}

asio::awaitable<void> plan::freeze_worker() {
    std::optional<std::size_t> frozen;
    const auto limit = timeline_.elapsed() + 3s;
    while (!frozen && timeline_.elapsed() < limit) {
        frozen = crew_.freeze_a_holder();
        co_await pause(3ms);
    }
    if (!frozen) {
        co_return;
    }
    frozen_.done = true;
    timeline_.injected(fmt::format(
        "worker {} frozen for {} s (SIGSTOP) while it has a lock",
        *frozen + 1,
        std::chrono::duration<double>(freeze_time).count()));
    co_await pause(freeze_time);
    crew_.resume(*frozen);
    timeline_.injected(fmt::format("worker {} resumed (SIGCONT)", *frozen + 1));
}

redlock::master_state plan::state(std::size_t master) {
    return observer_.manager().get_health().masters.at(master).state;
}

asio::awaitable<void> plan::until(double share) {
    const auto left = opened_ + (length_ - opened_) * share - timeline_.elapsed();
    co_await pause(std::chrono::duration_cast<std::chrono::milliseconds>(left));
}

asio::awaitable<void> plan::pause(std::chrono::milliseconds duration) {
    asio::steady_timer timer(observer_.manager().get_executor(), duration);
    co_await timer.async_wait(asio::use_awaitable);
}

std::vector<check> plan::checks() const {
    return {open_, killed_, back_, quarantined_, readmitted_, hung_, resumed_, frozen_};
}

} // namespace demo
