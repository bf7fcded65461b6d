#include "verdict.hpp"

#include <fmt/format.h>

#include <chrono>

namespace redlock::soak {
namespace {

double seconds(moment duration) {
    return std::chrono::duration<double>(duration).count();
}

} // namespace

bool verdict::good() const {
    return found.overlaps() == 0 && found.disorder() == 0 && stored.lost() == 0
           && found.wronged == 0 && progress && deserters == 0 && not_done == 0
           && kept_out.value_or(quarantine) >= quarantine;
}

std::string verdict::text(const injector& damage) const {
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

} // namespace redlock::soak
