#include "verdict.hpp"

#include "totals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace demo {
namespace {

double milliseconds(std::chrono::microseconds duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
}

// By the nearest rank.
double percentile(const std::vector<std::chrono::microseconds>& sorted, double rank) {
    const auto index = static_cast<std::size_t>(rank * static_cast<double>(sorted.size()));
    return milliseconds(sorted[std::min(index, sorted.size() - 1)]);
}

std::string latency_text(const board& shared, std::size_t workers) {
    const auto sorted = latencies_of(shared, workers);
    if (sorted.empty()) {
        return "none was granted";
    }
    return fmt::format(
        "p50 {:.1f} ms, p99 {:.1f} ms, max {:.1f} ms, waits for other holders included",
        percentile(sorted, 0.5),
        percentile(sorted, 0.99),
        milliseconds(sorted.back()));
}

std::string per_worker_text(const board& shared, std::size_t workers) {
    std::string text;
    for (std::size_t i = 0; i < workers; ++i) {
        text +=
            fmt::format("{}{}: {}", i == 0 ? "" : ", ", i + 1, shared.workers[i].written.load());
    }
    return text;
}

std::string faults_text(const plan& faults) {
    std::string text;
    for (const auto& one : faults.checks()) {
        text += fmt::format("\n    {:<4} {}", one.done ? "yes" : "NO", one.what);
    }
    if (const auto duration = faults.kept_out()) {
        text += fmt::format(
            "\n    the restarted master voted again after {:.1f} s; its quarantine is {:.1f} s",
            duration->count(),
            std::chrono::duration<double>(max_ttl).count());
    }
    return text;
}

} // namespace

verdict judge(
    const board& shared,
    const plan& faults,
    const std::string& worker_failure,
    const settings& chosen,
    const screen& output) {
    const auto total = total_of(shared, chosen.workers);
    const auto checks = faults.checks();
    std::string wrong;
    const auto expect = [&wrong](bool ok, const std::string& text) {
        if (!ok) {
            wrong += (wrong.empty() ? "" : "; ") + text;
        }
    };
    expect(worker_failure.empty(), worker_failure);
    expect(total.written == total.seen, "increments were lost");
    expect(total.overlaps == 0, "two workers held one lock at once");
    expect(total.acquired > 0 || chosen.unlocked, "no lock was acquired");
    expect(
        std::all_of(checks.begin(), checks.end(), [](const check& one) { return one.done; }),
        "not all that was planned did happen");

    verdict made;
    made.passed = wrong.empty();
    made.text = fmt::format(
        "\n{}\n"
        "  increments    {} expected, {} seen\n"
        "  overlaps      {}\n"
        "  acquisitions  {} in {} attempts, {} renewals; {} contended, {} without a quorum, "
        "{} failed else\n"
        "  lock losses   {} (the lock was lost before the write, which was left out)\n"
        "  acquire       {}\n"
        "  by worker     {}\n"
        "  happened{}\n",
        output.paint(style::bold, "verdict"),
        total.written,
        total.seen,
        total.overlaps,
        total.acquired,
        total.attempts,
        total.renewed,
        total.contended,
        total.no_quorum,
        total.other_failures,
        total.lost,
        latency_text(shared, chosen.workers),
        per_worker_text(shared, chosen.workers),
        faults_text(faults));
    if (made.passed) {
        made.text +=
            output.paint(style::green, "PASSED: never two holders at once, no increment lost");
    } else {
        made.text += output.paint(style::red, "FAILED: " + wrong);
    }
    return made;
}

} // namespace demo
