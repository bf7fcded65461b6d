// Makes a failing plan small: what can be taken out, or turned off, while the same promise is still
// broken, goes.

#include "world.hpp"

#include <fmt/format.h>

namespace simulation {

namespace {

class shrinker {
public:
    shrinker(plan what, lua_machine& lua, promise broken)
        : best_(std::move(what)),
          lua_(lua),
          broken_(broken) {}

    plan run() {
        for (std::size_t before = 0; before != best_.size();) {
            before = best_.size();
            drop_each([](plan & what) -> auto& { return what.faults; });
            for (std::size_t i = 0; i < best_.clients.size(); ++i) {
                drop_each([i](plan & what) -> auto& { return what.clients[i].workers; });
                for (std::size_t j = 0; j < best_.clients[i].workers.size(); ++j) {
                    drop_each(
                        [ i, j ](plan & what) -> auto& { return what.clients[i].workers[j]; });
                }
            }
            drop_last_clients();
            simplify();
        }
        return best_;
    }

private:
    // Keeps a candidate that breaks the same promise.
    bool keep(plan candidate) {
        const outcome ended = simulation::run(candidate, lua_);
        const bool fails = ended.broken && ended.broken->broken == broken_;
        if (fails) {
            best_ = std::move(candidate);
        }
        return fails;
    }

    template <typename List>
    void drop_each(List list) {
        for (std::size_t at = 0; at < list(best_).size();) {
            plan candidate = best_;
            auto& items = list(candidate);
            items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
            at += keep(std::move(candidate)) ? 0U : 1U;
        }
    }

    // Only the last: the others are named by their numbers.
    void drop_last_clients() {
        while (best_.clients.size() > 1) {
            plan candidate = best_;
            candidate.clients.pop_back();
            const int gone = static_cast<int>(candidate.clients.size());
            std::erase_if(candidate.faults, [&](const fault& one) { return one.client == gone; });
            if (!keep(std::move(candidate))) {
                break;
            }
        }
    }

    template <typename Change>
    void attempt(Change change) {
        plan candidate = best_;
        change(candidate);
        keep(std::move(candidate));
    }

    void simplify() {
        attempt([](plan& what) { what.air.slow_percent = 0; });
        attempt([](plan& what) { what.air.flush_max = 0; });
        attempt([](plan& what) { what.air.late_max = 0; });
        for (std::size_t i = 0; i < best_.masters.size(); ++i) {
            attempt([i](plan& what) { what.masters[i].rate_ppb = 0; });
            attempt([i](plan& what) { what.masters[i].offset_us = 0; });
        }
        for (std::size_t i = 0; i < best_.clients.size(); ++i) {
            attempt([i](plan& what) { what.clients[i].rate_ppb = 0; });
        }
    }

    plan best_;
    lua_machine& lua_;
    promise broken_;
};

} // namespace

plan shrink(plan what, lua_machine& lua, promise broken) {
    return shrinker(std::move(what), lua, broken).run();
}

std::string explain(const plan& failing, lua_machine& lua) {
    const plan smallest = shrink(failing, lua, run(failing, lua).broken->broken);
    const outcome again = run(smallest, lua, true);
    return fmt::format(
        "{}\n{}\nVIOLATION of {} at {:.3f} ms: {}\n(shrunk, from {} elements of the plan to {}; "
        "replay with --seed {} --profile {})\n",
        describe(smallest),
        again.story,
        to_string(again.broken->broken),
        static_cast<double>(again.broken->at) / ms,
        again.broken->text,
        failing.size(),
        smallest.size(),
        failing.seed,
        failing.profile);
}

} // namespace simulation
