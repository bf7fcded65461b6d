#include "run.hpp"

#include "injector.hpp"
#include "screen.hpp"
#include "show.hpp"

#include <fmt/format.h>

#include <csignal>
#include <optional>
#include <thread>

namespace redlock::soak {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto glance = 20ms; // the store gives no event
constexpr auto longest_sleep = 50ms;

// The signal that ends the run early. All processes and files go with it.
volatile std::sig_atomic_t ended_by = 0;
struct interrupted {};

double seconds(moment duration) {
    return std::chrono::duration<double>(duration).count();
}

// What a run has shown. Five things are counted and must not happen:
// - Two workers believe at the same time that they have the lock (ledger.hpp).
// - Tokens do not increase.
// - Updates are lost at the fenced store (store.hpp).
// - The store refuses a holder.
// - The quorum does not come back after all faults.
struct verdict {
    findings found;
    store::totals stored;
    bool progress = false;
    std::size_t deserters = 0;
    std::size_t not_done = 0;       // of the plan: faults, and that a killed master votes again
    std::optional<moment> kept_out; // a restarted master, from voting
    moment quarantine{};            // for which it has to be

    bool good() const {
        return found.overlaps() == 0 && found.disorder() == 0 && stored.lost() == 0
               && found.wronged == 0 && progress && deserters == 0 && not_done == 0
               && kept_out.value_or(quarantine) >= quarantine;
    }
    // Several lines.
    std::string text(const injector& damage) const {
        std::string lines;
        const auto line = [&lines](std::string_view what, const std::string& figures) {
            lines += fmt::format("{:<22} {}\n", what, figures);
        };
        line("acquisitions", fmt::format("{}, {} in vain", found.tenures.size(), found.failed));
        line("leases lost", fmt::format("{} (told by the library)", found.lost));
        lines += "faults\n";
        for (const auto& [kind, count] : damage.done()) {
            lines += fmt::format("  {:<32} {}\n", kind, count);
        }
        if (not_done != 0) {
            line("PLANNED AND NOT DONE", std::to_string(not_done));
        }
        if (kept_out) {
            line(
                "quarantine",
                fmt::format(
                    "a restarted master voted after {:.1f} s, and has to wait for {:.1f} s",
                    seconds(*kept_out),
                    seconds(quarantine)));
        }
        line("OVERLAPS", std::to_string(found.overlaps()));
        line("TOKENS OUT OF ORDER", std::to_string(found.disorder()));
        line("LOST UPDATES", fmt::format("{} of {} writes", stored.lost(), stored.writes));
        line("HOLDERS REFUSED", std::to_string(found.wronged));
        line("WORKERS THAT FAILED", std::to_string(deserters));
        line("stale writes refused", std::to_string(found.stale));
        line("progress at the end", progress ? "yes" : "NO");
        lines.pop_back();
        return lines;
    }
};

class performance {
public:
    explicit performance(const run_options& options) : options_(options) {
        const site_options& site = options.site;
        const auto ttl = pace_of(site.slow).ttl.count();
        output_.print(fmt::format(
            "soak: seed {}, {} masters, {} workers, {}, ttl {} ms, {} s",
            site.seed,
            site.masters,
            site.workers,
            site.namespaces ? "each on a host of its own" : "on loopback",
            ttl,
            options.seconds));
        where_.emplace(site);
        if (options.verbose || (options.screen && !output_.is_terminal())) {
            events_.on_event = [this](const event& one) {
                output_.print(event_line(output_, one));
            };
        }
        if (options.screen) {
            show_.emplace(
                *where_,
                events_,
                output_,
                fmt::format(
                    "redlock   {} masters, {} workers, ttl {} ms{}",
                    site.masters,
                    site.workers,
                    ttl,
                    site.how == unsafe::no_lock ? ", WITHOUT LOCKS" : ""));
        }
    }

    int play() {
        if (!more_writes(0)) {
            finish();
            output_.print("no worker got the lock before any fault");
            return 2;
        }
        injector damage(*where_, options_.site.seed, events_);
        const auto length = std::chrono::seconds(options_.seconds);
        if (options_.screen) {
            damage.follow_plan(length);
        }
        const auto end = steady::now() + length;
        while (steady::now() < end) {
            pass(std::min(end, damage.proceed())); // the schedule
        }
        damage.mend_all();
        for (std::size_t i = 0; options_.site.how == unsafe::dead_end && i < where_->masters();
             ++i) {
            where_->master(i).kill();
        }
        verdict it;
        it.progress = more_writes(writes() + where_->workers());
        it.found = where_->conclude();
        it.stored = where_->the_store().read();
        it.quarantine = where_->pace().max_ttl;
        if (show_) {
            it.kept_out = show_->kept_out();
            it.not_done = damage.planned() + (it.kept_out ? 0U : 1U);
        }
        finish();
        it.deserters = where_->deserters().size();
        output_.print(output_.paint(style::bold, "verdict"));
        output_.print(it.text(damage));
        output_.print(
            it.good() ? output_.paint(style::green, "held") : output_.paint(style::red, "BROKEN"));
        return it.good() ? 0 : 1;
    }

private:
    std::uint64_t writes() { return where_->the_store().read().writes; }

    bool more_writes(std::uint64_t than) {
        const auto end = steady::now() + std::chrono::seconds(options_.patience);
        while (writes() <= than) {
            if (steady::now() >= end || !where_->deserters().empty()) {
                return false;
            }
            pass(steady::now() + glance);
        }
        return true;
    }

    void pass(steady::time_point until) {
        do {
            const auto next = std::min(until, steady::now() + longest_sleep);
            if (show_) {
                show_->go_on(next);
            }
            std::this_thread::sleep_until(next);
            if (ended_by != 0) {
                throw interrupted();
            }
        } while (steady::now() < until);
    }

    void finish() {
        if (output_.is_terminal()) {
            output_.print(""); // below the picture
        }
        for (const std::string& one : where_->deserters()) {
            output_.print(one);
        }
    }

    const run_options& options_;
    screen output_;
    timeline events_;
    std::optional<site> where_;
    std::optional<show> show_;
};

} // namespace

int run(const run_options& options) {
    for (const int number : {SIGINT, SIGTERM}) {
        std::signal(number, [](int which) { ended_by = which; });
    }
    try {
        return performance(options).play();
    } catch (const interrupted&) {
        fmt::print("interrupted: no verdict\n");
        return 128 + ended_by;
    }
}

} // namespace redlock::soak
