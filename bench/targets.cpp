// One function per workload.
#include "targets.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

namespace bench {
namespace {

constexpr std::size_t masters_meant = 5;
constexpr std::int64_t crowd_max = 64;
constexpr std::int64_t processes_max = 4;

// For medians of which one is not to be worse than the other: what two equal ones may differ by.
constexpr double tolerance = 0.05;

class judge {
public:
    explicit judge(report& all) : all_(all) {}

    const row* find(std::string_view id, const coordinates& place) const {
        const auto* const table = all_.find(id);
        return table == nullptr ? nullptr : table->find(place);
    }

    void at_most(std::string what, const spread& measured, double bound, std::string_view unit) {
        add(std::move(what), "<=", measured, bound, unit, measured.median <= bound);
    }
    void at_least(std::string what, const spread& measured, double bound, std::string_view unit) {
        add(std::move(what), ">=", measured, bound, unit, measured.median >= bound);
    }

private:
    void
    add(std::string what,
        std::string_view relation,
        const spread& measured,
        double bound,
        std::string_view unit,
        bool reached) {
        if (!std::isnan(measured.median)) {
            all_.targets.push_back(
                {std::move(what),
                 fmt::format("{} {} {}", relation, bound, unit),
                 measured,
                 reached});
        }
    }

    report& all_;
};

void judge_latency(judge& of) {
    const auto* const plain = of.find("latency", {std::int64_t{masters_meant}, "plain"});
    const auto* const found = plain == nullptr ? nullptr : plain->ratio_of("acquire_p50_us");
    if (found != nullptr) {
        of.at_most("acquire p50, uncontended, plain", found->value, 1.15, "x floor");
    }
}

void judge_throughput(judge& of, const table& measured) {
    for (const auto& one : measured.rows) {
        const auto in_flight = std::get<std::int64_t>(one.at().front());
        const auto* const found = one.ratio_of("pairs_per_second");
        if (in_flight >= 64 && one.at().back() == coordinate("plain") && found != nullptr) {
            of.at_least(
                fmt::format("pairs/s at K = {}, plain", in_flight), found->value, 0.9, "x floor");
        }
    }
    for (const auto* const side : {"plain", "guarded", "fenced"}) {
        const auto* const few = measured.find({std::int64_t{64}, side});
        const auto* const many = measured.find({std::int64_t{4096}, side});
        if (few != nullptr && many != nullptr) {
            of.at_least(
                fmt::format("pairs/s at K = 4096, {} (no fall)", side),
                ratio_of(many->values("pairs_per_second"), few->values("pairs_per_second")),
                1 - tolerance,
                "x K = 64");
        }
    }
}

// The worst of the disturbances, as they all have one target.
void judge_faults(judge& of, const table& measured, const std::string& side) {
    for (const auto& [metric, name, bound] :
         {std::tuple{"acquire_p50_us", "p50", 1.1}, std::tuple{"acquire_p99_us", "p99", 1.5}}) {
        const row* worst = nullptr;
        for (const auto& one : measured.rows) {
            if (one.at().back() != coordinate(side) || one.ratio_of(metric) == nullptr) {
                continue;
            }
            if (worst == nullptr
                || one.ratio_of(metric)->value.median > worst->ratio_of(metric)->value.median) {
                worst = &one;
            }
        }
        if (worst != nullptr) {
            of.at_most(
                fmt::format(
                    "acquire {}, {}, one or two masters disturbed (worst: {})",
                    name,
                    side,
                    to_string(worst->at().front())),
                worst->ratio_of(metric)->value,
                bound,
                "x healthy");
        }
    }
}

void judge_outage(judge& of, const report& all, const std::string& side) {
    if (const auto* const refused = of.find("outage", {"3 refused", side})) {
        of.at_most(
            fmt::format("error when three of five refuse, {}, p99", side),
            refused->over_rounds("error_p99_ms"),
            1,
            "ms");
    }
    if (const auto* const hung = of.find("outage", {"3 hung", side})) {
        of.at_most(
            fmt::format("error when three of five hang, {}, the longest", side),
            hung->over_rounds("first_error_ms"),
            static_cast<double>(all.asked.master_timeout_ms) + 10,
            "ms");
    }
}

void judge_handoff(judge& of, const std::string& side) {
    const auto* const two = of.find("handoff", {std::int64_t{2}, std::int64_t{2}, side});
    const auto* const many = of.find("handoff", {crowd_max, processes_max, side});
    const auto* const local = of.find("handoff", {crowd_max, std::int64_t{1}, side});
    for (const auto& [one, where] :
         {std::pair{two, "2 waiters in 2 processes"}, std::pair{many, "64 waiters in 4"}}) {
        const auto* const found = one == nullptr ? nullptr : one->ratio_of("remote_p50_us");
        if (found != nullptr) {
            of.at_most(
                fmt::format("release to next holder in another process, {}, {}, p50", where, side),
                found->value,
                1.5,
                "x (acquire p50 + push)");
        }
    }
    if (two != nullptr && many != nullptr) {
        of.at_most(
            fmt::format("release to next holder, 64 waiters in 4 processes, {}, p50", side),
            ratio_of(many->values("remote_p50_us"), two->values("remote_p50_us")),
            1 + tolerance,
            "x 2 waiters in 2");
    }
    if (many != nullptr) {
        of.at_most(
            fmt::format("commands wasted per handoff, 64 waiters in 4 processes, {}", side),
            many->over_rounds("wasted_commands_per_handoff"),
            2 * masters_meant,
            "(2 x N)");
    }
    if (local != nullptr) {
        of.at_least(
            fmt::format("handoffs inside a process, 64 waiters, {}", side),
            local->over_rounds("handoffs_per_second"),
            500'000,
            "a second");
    }
}

void judge_rest(judge& of, const report& all, const std::string& side) {
    const auto judge_fairness =
        [&](std::int64_t waiters, std::int64_t processes, std::int64_t hold) {
            if (const auto* const fair = of.find("fairness", {waiters, processes, hold, side})) {
                of.at_least(
                    fmt::format(
                        "Jain's index, {} waiters in {} processes, hold {} ms, {}",
                        waiters,
                        processes,
                        hold,
                        side),
                    fair->over_rounds("jain_index"),
                    processes == 1 ? 0.99 : 0.9,
                    fmt::format("over {} s or more", all.asked.fairness_ms / 1e3));
            }
        };
    judge_fairness(crowd_max, 1, 0);
    for (const std::int64_t waiters : {std::int64_t{2}, std::int64_t{8}, crowd_max}) {
        for (const std::int64_t hold : {0, 1, 30}) {
            judge_fairness(waiters, waiters, hold);
        }
    }
    for (const auto* const what : {"held lock", "waiter"}) {
        if (const auto* const found = of.find("memory", {what, side})) {
            of.at_most(
                fmt::format("memory per {} beyond the name, {}", what, side),
                found->over_rounds("bytes_each"),
                1024,
                "bytes");
        }
    }
}

} // namespace

void add_targets(report& all) {
    if (all.asked.masters != masters_meant) {
        return;
    }
    judge of(all);
    judge_latency(of);
    if (const auto* const measured = all.find("throughput")) {
        judge_throughput(of, *measured);
    }
    for (const std::string side : {"plain", "guarded"}) {
        if (const auto* const measured = all.find("faults")) {
            judge_faults(of, *measured, side);
        }
        judge_outage(of, all, side);
        judge_handoff(of, side);
        judge_rest(of, all, side);
    }
}

} // namespace bench
