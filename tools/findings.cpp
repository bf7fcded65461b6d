#include "findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

namespace cli {
namespace {

using us = std::chrono::microseconds;

constexpr int oldest_major = 6;
constexpr int oldest_minor = 2;
constexpr std::chrono::hours certificate_soon{14 * 24};

std::string time_text(us time) {
    return fmt::format("{:.1f} ms", static_cast<double>(time.count()) / 1'000);
}

bool is_local(const redlock::endpoint& where) {
    return where.transport == redlock::transport::unix_socket || where.host == "localhost"
           || where.host == "::1" || where.host.starts_with("127.");
}

// Of one master.
class judgement {
public:
    judgement(
        const facts& it,
        const redlock::endpoint& where,
        const redlock::config& how,
        std::vector<finding>& out)
        : it_(it),
          where_(where),
          how_(how),
          out_(out) {}

    void run() {
        if (!it_.unreachable.empty()) {
            add(severity::broken,
                "reachable",
                "cannot be asked: " + it_.unreachable,
                "see that it runs, and that address, password and TLS are right");
            return;
        }
        kind();
        version();
        role();
        memory();
        durability();
        permissions();
        latency();
        quarantine();
        transport();
    }

private:
    void add(severity level, std::string check, std::string what, std::string change = {}) {
        out_.push_back({level, std::move(check), it_.endpoint, std::move(what), std::move(change)});
    }

    bool guarded() const { return how_.protocol == redlock::protocol::guarded; }

    void kind() {
        if (it_["run_id"].empty()) {
            add(severity::broken,
                "proxy",
                "does not say what it is (INFO has no run_id): a proxy, or no server of Redis' "
                "kind",
                "connect to the server itself, and allow INFO");
            return;
        }
        if (it_.run_id_of_other_connection != it_["run_id"]) {
            add(severity::broken,
                "proxy",
                "two connections to this address met two servers: something in between shares them "
                "out",
                "connect to one server, without a load balancer");
        }
        if (it_["redis_mode"] == "sentinel") {
            add(severity::broken, "role", "is a sentinel", "name a server that keeps data");
        }
        if (it_["cluster_enabled"] == "1") {
            const bool works = it_.write_refusal.empty() && it_.script_refusal.empty();
            add(works ? severity::warning : severity::broken,
                "slots",
                fmt::format(
                    "is a node of a cluster: keys move with their hash slots, and a lock and the "
                    "master's record are in two of them{}",
                    works ? "" : " (" + it_.write_refusal + it_.script_refusal + ")"),
                "use servers with cluster-enabled no");
        } else if (!it_.write_refusal.empty()) {
            add(severity::broken,
                "writes",
                "takes no lock: " + it_.write_refusal,
                "see its log; a lock is a write");
        } else if (!it_.script_refusal.empty()) {
            add(severity::broken,
                "scripts",
                "runs no script: " + it_.script_refusal,
                "see its log; the guarded protocol is scripts");
        }
    }

    void version() {
        const bool valkey = !it_["valkey_version"].empty();
        const std::string text = it_["redis_version"];
        const char* const from = text.c_str();
        char* dot = nullptr;
        const long major = std::strtol(from, &dot, 10);
        const long minor = *dot == '.' ? std::strtol(dot + 1, nullptr, 10) : 0;
        if (!valkey && !text.empty()
            && (major < oldest_major || (major == oldest_major && minor < oldest_minor))) {
            add(severity::warning,
                "version",
                "is Redis " + text + ": nothing below 6.2 is tested",
                "upgrade it");
        }
    }

    void role() {
        if (it_["role"] == "slave") {
            add(severity::broken,
                "replication",
                fmt::format("is a replica of {}:{}", it_["master_host"], it_["master_port"]),
                "name the master, or REPLICAOF NO ONE; masters of a quorum share nothing");
        } else if (!it_["connected_slaves"].empty() && it_["connected_slaves"] != "0") {
            add(severity::warning,
                "replication",
                it_["connected_slaves"]
                    + " replicas follow it: one that is put in its place has "
                      "forgotten the last locks",
                "never fail over to them (no sentinel, no operator) or remove them");
        }
        if (const std::string needed = it_.parameter("min-replicas-to-write");
            !needed.empty() && needed != "0") {
            add(severity::warning,
                "replication",
                "refuses writes without " + needed + " replicas (min-replicas-to-write)",
                "CONFIG SET min-replicas-to-write 0");
        }
        if (it_["loading"] == "1") {
            add(severity::warning, "role", "is loading its data", "wait");
        }
    }

    void memory() {
        const std::string policy = it_["maxmemory_policy"];
        if (policy.empty() || policy == "noeviction") {
            return;
        }
        const bool limited = it_["maxmemory"] != "0";
        add(limited ? severity::broken : severity::warning,
            "eviction",
            fmt::format(
                "may evict locks (maxmemory-policy {}){}",
                policy,
                limited ? "" : " as soon as it has a maxmemory"),
            "CONFIG SET maxmemory-policy noeviction");
    }

    void durability() {
        if (it_["aof_enabled"] == "1" && it_["aof_last_write_status"] == "err") {
            add(severity::broken,
                "persistence",
                "cannot write its append-only file",
                "see its disk");
        }
        const bool always = it_["aof_enabled"] == "1" && it_.parameter("appendfsync") == "always";
        if (always && it_.parameter("no-appendfsync-on-rewrite") == "yes") {
            add(severity::broken,
                "persistence",
                "appendfsync always, but not while the file is rewritten: a lock that was granted "
                "then may be forgotten, and nothing keeps the master out",
                "CONFIG SET no-appendfsync-on-rewrite no");
        } else if (always) {
            add(severity::note,
                "persistence",
                "writes every lock to disk: it votes at once after a restart. Never give it a "
                "backup or another server's files");
        } else {
            add(severity::note,
                "persistence",
                fmt::format(
                    "may forget locks in a restart, and stays out for max_ttl ({}) after one",
                    duration_text(how_.max_ttl)));
        }
        if (it_["rdb_last_bgsave_status"] == "err") {
            add(severity::warning,
                "persistence",
                "its last snapshot failed, so it may refuse writes (stop-writes-on-bgsave-error)",
                "see its disk, or switch snapshots off: save \"\"");
        }
    }

    void permissions() {
        std::string needed;
        std::string useful;
        for (const permission& one : it_.permissions) {
            if (!one.refusal.empty()) {
                std::string& list = one.needed ? needed : useful;
                list += (list.empty() ? "" : " ") + one.rule;
            }
        }
        if (!needed.empty()) {
            add(severity::broken,
                "acl",
                "refuses what every lock needs: " + needed,
                acl_line(how_));
        }
        if (!useful.empty()) {
            add(severity::warning,
                "acl",
                "refuses what makes locks faster or this report complete: " + useful,
                acl_line(how_));
        }
    }

    void latency() {
        if (it_.round_trips.empty()) {
            return;
        }
        const us median = it_.round_trips[it_.round_trips.size() / 2];
        const us limit = how_.master_timeout;
        const std::string what = fmt::format(
            "answers in {} (median), {} (longest of {})",
            time_text(median),
            time_text(it_.round_trips.back()),
            it_.round_trips.size());
        const std::string change = fmt::format(
            "move it closer, or raise master-timeout ({}), everywhere",
            duration_text(how_.master_timeout));
        if (median > limit) {
            add(severity::broken, "latency", what + ": later than master_timeout", change);
        } else if (median * 4 > limit) {
            add(severity::warning, "latency", what + ": near master_timeout", change);
        } else {
            add(severity::note, "latency", what);
        }
    }

    void quarantine() {
        // As lib/core computes it; the record keeps the longest that any client asked for.
        const auto share = 1 + 2 * how_.clock_drift_factor;
        const auto ours = milliseconds(static_cast<milliseconds::rep>(
                              static_cast<double>(how_.max_ttl.count()) * share))
                          + how_.clock_drift_margin + how_.clock_offset_bound;
        if (guarded() && it_.record_quarantine && !how_.masters.empty()
            && *it_.record_quarantine > ours + milliseconds(1)) {
            add(severity::warning,
                "max_ttl",
                fmt::format(
                    "was told of a quarantine of {} by another client, and of {} by this one: they "
                    "do not agree on max-ttl or on the clocks",
                    duration_text(*it_.record_quarantine),
                    duration_text(ours)),
                "give all programs the same --max-ttl and --clock-offset-bound");
        }
    }

    void transport() {
        if (where_.transport == redlock::transport::tls) {
            if (!how_.tls.verify) {
                add(severity::warning,
                    "tls",
                    "its certificate is not verified",
                    "leave --tls-insecure away");
            }
            if (it_.certificate_left && *it_.certificate_left < certificate_soon) {
                add(severity::warning,
                    "tls",
                    fmt::format(
                        "its certificate ends in {} days", it_.certificate_left->count() / 24),
                    "renew it");
            }
        } else if (!is_local(where_) && !(where_.password.empty() && how_.password.empty())) {
            add(severity::warning,
                "tls",
                "the password goes over the network for everybody to read",
                "use rediss://");
        }
    }

    const facts& it_;
    const redlock::endpoint& where_;
    const redlock::config& how_;
    std::vector<finding>& out_;
};

// What shows only of all together.
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

    // The library's own verdict.
    void votes() {
        for (const redlock::master_health& one : health_.masters) {
            if (one.state == redlock::master_state::quarantined) {
                out_.push_back(
                    {severity::warning,
                     "quarantine",
                     one.endpoint,
                     fmt::format(
                         "does not vote for {} more: it restarted, or was emptied, and may have "
                         "forgotten locks",
                         duration_text(one.quarantine_left.value_or(milliseconds(0)))),
                     "wait, and find out why; nothing else is needed"});
            }
        }
        if (!health_.ready) {
            add(severity::broken,
                "quorum",
                fmt::format(
                    "no lock can be had: {} of {} masters vote, {} are needed",
                    health_.admitted,
                    health_.masters.size(),
                    health_.quorum),
                "see what is said of the masters");
        }
        if (health_.quarantine_off) {
            add(severity::warning,
                "quarantine",
                "is off: a master that restarts votes at once and may grant what it has forgotten",
                "leave --no-quarantine away");
        }
    }

    void number() {
        const std::size_t n = masters_.size();
        if (n < 3) {
            add(severity::warning,
                "quorum",
                fmt::format("{} master{}: none may fail", n, n == 1 ? "" : "s"),
                "three masters survive the loss of one, five that of two");
        } else if (n % 2 == 0) {
            add(severity::warning,
                "quorum",
                fmt::format("{0} masters survive no more failures than {1}", n, n - 1),
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
                     "is the same server as " + place->second + ": together they have one vote",
                     "name each server once"});
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
        for (const facts& one : masters_) {
            if (!one.clock.empty()) {
                const clock_sample& it = one.clock.front();
                low = low == nullptr || it.ahead < low->ahead ? &it : low;
                high = high == nullptr || it.ahead > high->ahead ? &it : high;
            }
        }
        if (low == high) {
            return;
        }
        const us apart = high->ahead - low->ahead;
        const us surely = apart - high->uncertain - low->uncertain;
        const us bound = how_.clock_offset_bound;
        const std::string what = fmt::format("the masters' clocks are {} apart", time_text(apart));
        const std::string change = "run NTP on all of them, or raise --clock-offset-bound ("
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

    // A clock that gains or loses against ours by more than a lease allows for.
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
                         "its clock went wrong by {} in {}: {:.2f} % and clock_drift_factor allows "
                         "{:.2f} %",
                         time_text(us(static_cast<us::rep>(moved))),
                         time_text(us(static_cast<us::rep>(time))),
                         surely * 100,
                         how_.clock_drift_factor * 100),
                     "see its clock: NTP should slew it, and never step it"});
            }
        }
    }

    void times() {
        if (how_.master_timeout * 10 > how_.max_ttl) {
            add(severity::warning,
                "times",
                fmt::format(
                    "master_timeout ({}) is not small against max_ttl ({})",
                    duration_text(how_.master_timeout),
                    duration_text(how_.max_ttl)),
                "a tenth is the most that makes sense");
        }
    }

    const std::vector<facts>& masters_;
    const redlock::config& how_;
    const redlock::health& health_;
    std::vector<finding>& out_;
};

} // namespace

std::string_view to_string(severity level) noexcept {
    switch (level) {
    case severity::note:
        return "note";
    case severity::warning:
        return "warning";
    case severity::broken:
        return "broken";
    }
    return "unknown";
}

std::vector<finding> judge(
    const std::vector<facts>& masters, const redlock::config& how, const redlock::health& health) {
    std::vector<finding> out;
    for (std::size_t i = 0; i < masters.size(); ++i) {
        judgement(masters[i], how.masters[i], how, out).run();
    }
    comparison(masters, how, health, out).run();
    std::stable_sort(out.begin(), out.end(), [](const finding& a, const finding& b) {
        return a.level > b.level;
    });
    return out;
}

std::string acl_line(const redlock::config& how) {
    const std::string user = how.username.empty() ? "locker" : how.username;
    const std::string scope =
        how.key_prefix.empty() ? "~* &*" : fmt::format("~{0}* &{0}*", how.key_prefix);
    const char* const rules =
        how.protocol == redlock::protocol::guarded
            ? "+info +eval +evalsha +time +get +set +del +pttl +pexpire +hmget +hset +exists +ping "
              "+client|setname +config|get +publish +subscribe +unsubscribe"
            : "+info +eval +evalsha +get +set +del +pttl +pexpire +exists +ping +client|setname "
              "+config|get +publish +subscribe +unsubscribe";
    return fmt::format("ACL SETUSER {} reset on >PASSWORD {} {}", user, scope, rules);
}

} // namespace cli
