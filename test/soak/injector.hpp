// Does damage, by a seed. What it does is within the assumptions that the library states
// (docs/guarantees.md): it never steps a clock, and masters that claim to fsync every write do.
//
// A target that has a fault is left alone until that is over, so that each fault can be undone.
// The schedule follows the seed; what it meets, of course, depends on the machine's mood.
#pragma once

#include "site.hpp"
#include "timeline.hpp"

#include <array>
#include <map>
#include <random>
#include <span>

namespace redlock::soak {

class injector {
public:
    using clock = std::chrono::steady_clock;

    injector(site& where, std::uint64_t seed, timeline& events);

    /// From now on not at random, but one fault of each kind that can be followed by eye: a master
    /// killed and empty afterwards, another one hung, a holder stopped past its lease.
    void follow_plan(clock::duration length);

    /// Does what is due, and tells when to call again.
    clock::time_point proceed();

    /// Ends all faults.
    void mend_all();

    /// How many by kind.
    const std::map<std::string, unsigned>& done() const noexcept { return done_; }
    /// How many of the plan were not done.
    std::size_t planned() const noexcept { return plan_.size(); }

private:
    struct target {
        std::string name;
        clock::time_point until;
        std::function<void()> mend; // empty: nothing is wrong with it
    };
    using milliseconds = std::chrono::milliseconds;
    enum class fault { kill, hang, freeze };
    struct step {
        double at;    // these two are shares of the run
        double lasts; // not of a holder, which is out for longer than its lease
        fault what;
    };

    void mend(const std::function<bool(const target&)>& is_over);
    void inject();
    void take_step();
    milliseconds share(double part) const;
    bool freeze_holder();
    void hurt_master(std::size_t which);
    void kill_master(std::size_t which, bool empty, milliseconds lasts);
    void hang_master(std::size_t which, milliseconds lasts);
    void hurt_worker(std::size_t which);
    void stop_worker(std::size_t which, const std::string& kind, milliseconds lasts);
    void cut_off(std::size_t which);
    void
    begin(target& whom, milliseconds lasts, const std::string& kind, std::function<void()> mend);
    void count(const std::string& kind, const std::string& on);

    target& master(std::size_t which) { return targets_[which]; }
    target& worker(std::size_t which) { return targets_[site_.masters() + which]; }
    std::size_t pick(std::size_t n);
    milliseconds between(int from, int to);

    site& site_;
    std::mt19937_64 random_;
    timeline& events_;
    std::vector<target> targets_; // masters, then workers
    std::map<std::string, unsigned> done_;
    clock::time_point next_;
    std::span<const step> plan_; // what is left of it
    std::size_t victim_ = 0;     // of the plan
    clock::time_point began_;
    clock::duration length_{}; // 0: without a plan
};

} // namespace redlock::soak
