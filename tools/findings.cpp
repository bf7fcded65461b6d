#include "findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace cli {
namespace {

using us = std::chrono::microseconds;

constexpr int oldest_tested = 7;
constexpr std::chrono::hours certificate_soon{14 * 24};

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
        if (it_["redis_mode"] == "sentinel" || it_["server_mode"] == "sentinel") { // of Valkey
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
        if (!valkey && !text.empty() && std::strtol(text.c_str(), nullptr, 10) < oldest_tested) {
            add(severity::warning,
                "version",
                fmt::format("is Redis {}: nothing below {}.0 is tested", text, oldest_tested),
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
        const std::string promoted_from = it_["master_replid2"];
        if (it_["role"] == "master" && promoted_from.find_first_not_of('0') != std::string::npos) {
            add(severity::warning,
                "replication",
                "was a replica before it became a master, or has loaded the data of a server with "
                "replicas: it may have forgotten locks without a restart",
                "never make a voting master a replica: put an empty server in its place");
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
        add(severity::note,
            "persistence",
            fmt::format(
                "{}, and stays out for max_ttl ({}) after one",
                always ? "writes every lock to disk, so that holders keep theirs over a restart"
                       : "may forget locks in a restart",
                duration_text(how_.max_ttl)));
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
            latency_text(median),
            latency_text(it_.round_trips.back()),
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
        if (guarded() && it_.foreign_record) {
            add(severity::broken,
                "record",
                "has a record '" + it_.record + "' of another version of redlock",
                "end all clients of that version, then on each master: DEL " + it_.record);
        }
        if (guarded() && it_.record_quarantine && !how_.masters.empty()
            && *it_.record_quarantine > ours + milliseconds(1)) {
            add(severity::warning,
                "max_ttl",
                fmt::format(
                    "was told of a quarantine of {} by another client, and of {} by this one: they "
                    "do not agree on max-ttl or on the clocks",
                    duration_text(*it_.record_quarantine),
                    duration_text(ours)),
                "give all programs the same --max-ttl and --clock-offset-bound. The longer one is "
                "kept: when no lock with the longer ttl is left, on one master after the other: "
                "DEL "
                    + it_.record);
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

} // namespace

void judge_master(
    const facts& master,
    const redlock::endpoint& where,
    const redlock::config& how,
    std::vector<finding>& out) {
    judgement(master, where, how, out).run();
}

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

std::string acl_line(const redlock::config& how) {
    const std::string user = how.username.empty() ? "locker" : how.username;
    const std::string scope =
        how.key_prefix.empty() ? "~* &*" : fmt::format("~{0}* &{0}*", printable(how.key_prefix));
    const char* const rules =
        how.protocol == redlock::protocol::guarded
            ? "+info +eval +evalsha +time +get +set +del +pttl +pexpire +exists +mget "
              "+zadd +zscore +zrange +zrank +zrem +zremrangebyscore +ping +client|setname "
              "+publish +subscribe +unsubscribe"
            : "+info +eval +evalsha +time +get +set +del +pttl +pexpire +exists +mget "
              "+zadd +zscore +zrange +zrank +zrem +ping +client|setname "
              "+publish +subscribe +unsubscribe";
    return fmt::format("ACL SETUSER {} reset on >PASSWORD {} {}", user, scope, rules);
}

} // namespace cli
