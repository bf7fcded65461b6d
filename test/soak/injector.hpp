// Does damage, by a seed. What it does is within the assumptions that the library states
// (docs/guarantees.md): it never steps a clock, and masters that claim to fsync every write do.
//
// A target that has a fault is left alone until that is over, so that each fault can be undone.
// The schedule follows the seed; what it meets, of course, depends on the machine's mood.
#pragma once

#include "site.hpp"

#include <array>
#include <map>
#include <random>

namespace redlock::soak {

class injector {
public:
    using clock = std::chrono::steady_clock;

    injector(site& where, std::uint64_t seed, std::function<void(const std::string&)> say);

    /// Does what is due, and tells when to call again.
    clock::time_point proceed();

    /// Ends all faults.
    void mend_all();

    /// How many by kind.
    const std::map<std::string, unsigned>& done() const noexcept { return done_; }

private:
    struct target {
        clock::time_point until;
        std::function<void()> mend; // empty: nothing is wrong with it
    };
    using milliseconds = std::chrono::milliseconds;

    void inject();
    void hurt_master(std::size_t which);
    void hurt_worker(std::size_t which);
    void cut_off(std::size_t master);
    void begin(
        target& whom,
        milliseconds lasts,
        const std::string& kind,
        const std::string& on,
        std::function<void()> mend);
    void count(const std::string& kind, const std::string& on);
    void end(target& whom);

    std::size_t pick(std::size_t n);
    milliseconds between(int from, int to);

    site& site_;
    std::mt19937_64 random_;
    std::function<void(const std::string&)> say_;
    std::vector<target> masters_;
    std::vector<target> workers_;
    std::map<std::string, unsigned> done_;
    clock::time_point next_;
};

} // namespace redlock::soak
