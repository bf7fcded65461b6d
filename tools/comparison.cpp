#include "findings.hpp"
#include "hints.hpp"
#include "members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace cli {
namespace {

// Findings that need all masters together.
class comparison {
public:
    comparison(
        const std::vector<facts>& masters,
        const redlock::config& how,
        const redlock::health& health,
        std::vector<finding>& out)
        : masters_(masters),
          how_(how),
          health_(health),
          out_(out) {}

    void run() {
        votes();
        members();
        missing();
        number();
        same_server();
        versions();
        offsets();
        rates();
        times();
    }

private:
    void add(severity level, std::string check, std::string what, std::string change = {}) {
        out_.push_back({level, std::move(check), "", std::move(what), std::move(change)});
    }

    // The library's own judgement.
    void votes() {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if (health_.members.empty() || is_member(i)) {
                vote_of(masters_[i], health_.masters[i]);
            }
        }
        const std::size_t voting = voters(out_, masters_, health_);
        if (!health_.ready || voting < health_.quorum) {
            add(severity::broken,
                "quorum",
                fmt::format(
                    "no lock can be acquired: {} of {} masters vote, {} are needed",
                    voting,
                    health_.masters.size(),
                    health_.quorum),
                "see the findings of the masters");
        }
        if (!how_.quarantine) {
            add(severity::warning,
                "quarantine",
                "is off: a restarted master votes at once and may grant a lock that is held",
                "remove --no-quarantine");
        } else if (
            how_.protocol == redlock::protocol::guarded && health_.generation > 0
            && health_.quarantine_time.count() == 0) {
            add(severity::warning,
                "quarantine",
                "none is recorded: all clients so far, if any, had --no-quarantine. A restarted "
                "master votes at once and may grant a lock that is held",
                "remove --no-quarantine: the first client without it records a quarantine");
        }
    }

    void vote_of(const facts& it, const redlock::master_health& mine) {
        using state = redlock::master_state;
        if (mine.state == state::quarantined) {
            out_.push_back(
                {severity::warning,
                 "quarantine",
                 it.endpoint,
                 fmt::format(
                     "does not vote for another {}: it is new to this quorum, restarted, was "
                     "emptied or promoted, or its clock was stepped",
                     duration_text(std::chrono::ceil<std::chrono::seconds>(
                         mine.quarantine_left.value_or(milliseconds(0))))),
                 "wait; if the master is not new, find the cause"});
        } else if (
            (mine.state == state::founding || mine.state == state::ineligible)
            && it["loading"] != "1" && !is_broken(it.endpoint)) {
            const bool unfounded = mine.text.starts_with("the quorum is not founded yet");
            const std::string_view remedy =
                unfounded ? "compare the list of masters; then redlock members found, or the first "
                            "lock, founds the quorum with the list of that client"
                          : remedy_of(mine.text);
            out_.push_back(
                {severity::broken,
                 "vote",
                 it.endpoint,
                 "does not vote: " + mine.text,
                 remedy.empty() ? "see docs/errors.md, 'Why a master does not vote'"
                                : std::string(remedy)});
        }
    }

    bool is_member(std::size_t i) const {
        return std::ranges::count(health_.members, member_name(how_.masters[i])) > 0;
    }

    bool is_broken(const std::string& master) const {
        return std::ranges::any_of(out_, [&](const finding& one) {
            return one.level == severity::broken && one.master == master;
        });
    }

    // What the memory records contain of the members.
    void members() {
        if (const std::string newer_on = outdated_on(health_, how_); !newer_on.empty()) {
            add(severity::broken,
                "members",
                fmt::format(
                    "this list of masters is outdated: it has too few of the members that {} has "
                    "recorded",
                    newer_on),
                "use a list of the present members, here and in each client with this list");
        }
        std::map<std::string, std::string> plans;
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            const redlock::master_health& mine = health_.masters[i];
            const std::string name = member_name(how_.masters[i]);
            if (mine.generation == health_.generation && !mine.planned.empty()) {
                std::string& names = plans[mine.planned];
                names += (names.empty() ? "" : ", ") + name;
            } else if (!health_.members.empty() && !is_member(i) && mine.generation == 0) {
                out_.push_back(
                    {severity::warning,
                     "members",
                     masters_[i].endpoint,
                     "is not a member of the quorum: its vote does not count",
                     (masters_[i].unreachable.empty() ? "redlock members add " + name + ", or "
                                                      : "")
                         + "remove it from --masters"});
            } else if (!health_.members.empty() && !is_member(i)) {
                out_.push_back(
                    {severity::warning,
                     "members",
                     masters_[i].endpoint,
                     fmt::format(
                         "is not a member, and has a memory record of generation {}",
                         mine.generation),
                     "if it is a member under another name, write that (redlock members shows "
                     "them); "
                     "shut it down if it was removed; to add it again, FLUSHALL it first, unless "
                     "it "
                     "was the last to be removed"});
            } else if (
                is_member(i) && mine.generation > 0 && mine.generation < health_.generation) {
                out_.push_back(
                    {severity::warning,
                     "members",
                     masters_[i].endpoint,
                     fmt::format(
                         "its memory record has generation {} of the members, the quorum {}",
                         mine.generation,
                         health_.generation),
                     "wait: a client writes the newer one; if it stays, check the ACL"});
            }
        }
        for (const auto& [plan, names] : plans) {
            add(severity::warning,
                "members",
                fmt::format("a change of the members is not final: {}, planned on {}", plan, names),
                "if nobody makes it at present: redlock members " + plan);
        }
    }

    // Members that are not in the list: for this client they are as masters that never reply.
    void missing() {
        std::vector<std::string> names;
        for (const std::string& one : health_.members) {
            if (std::ranges::count(how_.masters, one, member_name) == 0) {
                names.push_back(one);
            }
        }
        if (names.empty() || !outdated_on(health_, how_).empty()) {
            return;
        }
        const std::size_t all = health_.members.size();
        const std::size_t listed = all - names.size();
        const std::size_t spare = listed - std::min(listed, health_.quorum);
        add(severity::warning,
            "members",
            fmt::format(
                "{} of the {} members {} not in this list: {}. This client tolerates {} failure{} "
                "instead of {}",
                names.size(),
                all,
                names.size() == 1 ? "is" : "are",
                fmt::join(names, ", "),
                spare == 0 ? "no" : std::to_string(spare),
                spare == 1 ? "" : "s",
                all - health_.quorum),
            "add each of them to the list, here and in each client with this list, spelled as here "
            "or with ?name=NAME");
    }

    void number() {
        const std::size_t n = health_.members.empty() ? masters_.size() : health_.members.size();
        if (n < 3) {
            add(severity::warning,
                "quorum",
                fmt::format("{} master{}: tolerates no failure", n, n == 1 ? "" : "s"),
                "use three masters to tolerate one failure, five to tolerate two");
        } else if (n % 2 == 0) {
            add(severity::warning,
                "quorum",
                fmt::format("{0} masters tolerate as many failures as {1}", n, n - 1),
                "use an odd number");
        }
    }

    void same_server() {
        std::map<std::string, std::string> first;
        for (const facts& one : masters_) {
            const std::string id = one["run_id"];
            if (id.empty()) {
                continue;
            }
            const auto [place, is_new] = first.emplace(id, one.endpoint);
            if (!is_new) {
                out_.push_back(
                    {severity::broken,
                     "duplicate",
                     one.endpoint,
                     "is the same server as " + place->second + ": both together have one vote",
                     "list each server once"});
            }
        }
    }

    void versions() {
        std::set<std::string> all;
        for (const facts& one : masters_) {
            if (one.unreachable.empty()) {
                all.insert(one["redis_version"] + one["valkey_version"]);
            }
        }
        if (all.size() > 1) {
            add(severity::note, "version", fmt::format("the masters run {} versions", all.size()));
        }
    }

    void offsets() {
        const clock_sample* low = nullptr;
        const clock_sample* high = nullptr;
        std::size_t compared = 0;
        for (const facts& one : masters_) {
            if (!one.clock.empty()) {
                ++compared;
                const clock_sample& it = one.clock.front();
                low = low == nullptr || it.ahead < low->ahead ? &it : low;
                high = high == nullptr || it.ahead > high->ahead ? &it : high;
            }
        }
        if (compared < 2) {
            return;
        }
        const std::chrono::microseconds apart = high->ahead - low->ahead;
        const std::chrono::microseconds surely = apart - high->uncertain - low->uncertain;
        const std::chrono::microseconds bound = how_.clock_offset_bound;
        const std::string what =
            fmt::format("the masters' clocks are {} apart", latency_text(apart));
        const std::string change = "run NTP on all of them, or increase --clock-offset-bound ("
                                   + duration_text(how_.clock_offset_bound) + "), everywhere";
        if (surely > bound) {
            add(severity::broken, "clock", what + ": more than clock_offset_bound", change);
        } else if (surely * 2 > bound) {
            add(severity::warning,
                "clock",
                what + ": more than half of clock_offset_bound",
                change);
        } else {
            add(severity::note, "clock", what);
        }
    }

    // A clock whose rate differs from ours by more than a lease allows for.
    void rates() {
        for (const facts& one : masters_) {
            if (one.clock.size() < 2) {
                continue;
            }
            const clock_sample& a = one.clock.front();
            const clock_sample& b = one.clock.back();
            const double time = std::chrono::duration<double, std::micro>(b.at - a.at).count();
            const double moved = std::abs(static_cast<double>((b.ahead - a.ahead).count()));
            const double unknown = static_cast<double>((a.uncertain + b.uncertain).count());
            const double surely = std::max(0.0, moved - unknown) / time;
            if (surely * 2 > how_.clock_drift_factor) {
                out_.push_back(
                    {surely > how_.clock_drift_factor ? severity::broken : severity::warning,
                     "clock",
                     one.endpoint,
                     fmt::format(
                         "its clock drifted by {} in {}: {:.2f} %; clock_drift_factor allows "
                         "{:.2f} %",
                         latency_text(std::chrono::microseconds(
                             static_cast<std::chrono::microseconds::rep>(moved))),
                         latency_text(std::chrono::microseconds(
                             static_cast<std::chrono::microseconds::rep>(time))),
                         surely * 100,
                         how_.clock_drift_factor * 100),
                     "check its clock: NTP should slew it and never step it"});
            }
        }
    }

    void times() {
        const milliseconds longest = health_.max_ttl;
        if (longest.count() == 0) {
            return; // not known
        }
        add(severity::note,
            "times",
            fmt::format(
                "no lock may have a longer ttl than {}; a restarted master does not vote for {}",
                duration_text(longest),
                duration_text(health_.quarantine_time)),
            "");
        if (how_.master_timeout * 10 > longest) {
            add(severity::warning,
                "times",
                fmt::format(
                    "master_timeout ({}) is large compared with max_ttl ({})",
                    duration_text(how_.master_timeout),
                    duration_text(longest)),
                "use at most a tenth of max_ttl");
        }
    }

    const std::vector<facts>& masters_;
    const redlock::config& how_;
    const redlock::health& health_;
    std::vector<finding>& out_;
};

} // namespace

bool refuses_locks(const finding& it) {
    constexpr std::array<std::string_view, 8> checks{
        "acl", "commands", "latency", "persistence", "reachable", "scripts", "slots", "writes"};
    return it.level == severity::broken && std::ranges::count(checks, it.check) > 0;
}

std::size_t voters(
    const std::vector<finding>& found,
    const std::vector<facts>& masters,
    const redlock::health& health) {
    std::size_t out = health.admitted;
    for (std::size_t i = 0; i < masters.size(); ++i) {
        const bool refuses = std::ranges::any_of(found, [&](const finding& one) {
            return one.master == masters[i].endpoint && refuses_locks(one);
        });
        if (refuses && health.masters[i].state == redlock::master_state::admitted && out > 0) {
            --out;
        }
    }
    return out;
}

std::vector<finding> judge(
    const std::vector<facts>& masters, const redlock::config& how, const redlock::health& health) {
    std::vector<finding> out;
    for (std::size_t i = 0; i < masters.size(); ++i) {
        judge_master(masters[i], how.masters[i], how, out);
    }
    comparison(masters, how, health, out).run();
    std::stable_sort(out.begin(), out.end(), [](const finding& a, const finding& b) {
        return a.level > b.level;
    });
    return out;
}

} // namespace cli
