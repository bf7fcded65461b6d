#include "verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace redlock::soak {
namespace {

using namespace std::chrono_literals;

constexpr auto handoff = 250ms; // what one worker may take to get the lock after another

double milliseconds(moment duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
}

// By the nearest rank.
double percentile(const std::vector<moment>& sorted, double rank) {
    const auto index = static_cast<std::size_t>(rank * static_cast<double>(sorted.size()));
    return sorted.empty() ? 0 : milliseconds(sorted[std::min(index, sorted.size() - 1)]);
}

} // namespace

bool verdict::good() const {
    return found.overlaps() == 0 && found.disorder() == 0 && stored.lost() == 0
           && found.wronged == 0 && progress && deserters == 0 && not_done == 0
           && kept_out.value_or(quarantine) >= quarantine;
}

std::string verdict::text(const injector& damage, moment end) const {
    const findings::service service = found.availability(handoff, end);
    std::vector<moment> waits = found.waits;
    std::sort(waits.begin(), waits.end());
    std::string lines;
    const auto line = [&lines](std::string_view what, const std::string& figures) {
        lines += fmt::format("{:<22} {}\n", what, figures);
    };
    line("acquisitions", std::to_string(found.tenures.size()));
    line(
        "waits for the lock",
        fmt::format(
            "p50 {:.1f} ms, p99 {:.1f} ms, max {:.1f} ms; {} in vain",
            percentile(waits, 0.5),
            percentile(waits, 0.99),
            percentile(waits, 1),
            found.failed));
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
                milliseconds(*kept_out) / 1'000,
                milliseconds(quarantine) / 1'000));
    }
    line("OVERLAPS", std::to_string(found.overlaps()));
    line("TOKENS OUT OF ORDER", std::to_string(found.disorder()));
    line("LOST UPDATES", fmt::format("{} of {} writes", stored.lost(), stored.writes));
    line("HOLDERS REFUSED", std::to_string(found.wronged));
    line("WORKERS THAT FAILED", std::to_string(deserters));
    line("stale writes refused", std::to_string(found.stale));
    line(
        "availability",
        fmt::format(
            "{:.1f} % (gaps above {} ms are outages), longest gap {:.0f} ms",
            100 * service.share,
            handoff.count(),
            milliseconds(service.longest_gap)));
    line("progress at the end", progress ? "yes" : "NO");
    lines.pop_back();
    return lines;
}

} // namespace redlock::soak
