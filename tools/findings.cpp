#include "findings.hpp"

#include "acl.hpp"
#include "config/sizing.hpp"
#include "hints.hpp"
#include "words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <utility>

namespace cli {
namespace {

using us = std::chrono::microseconds;

constexpr int oldest_tested = 7;
constexpr std::chrono::hours certificate_soon{14 * 24};

bool is_local(const redlock::endpoint& where) {
    return !where.path.empty() || where.host == "localhost" || where.host == "::1"
           || where.host.starts_with("127.");
}

milliseconds quarantine_of(const redlock::config& how) {
    return std::chrono::ceil<milliseconds>(redlock::detail::times_of(how, {}).quarantine);
}

// Findings on one master.
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
        if (it_.wants_password) {
            add(severity::broken,
                "reachable",
                "wants a password, and none was given: " + it_.unreachable,
                "give it by --password-file or REDLOCK_PASSWORD; if the masters have different "
                "passwords, in the URL of each");
            return;
        }
        if (!it_.unreachable.empty()) {
            const std::string_view known = remedy_of(it_.unreachable, where_);
            const std::string_view remedy =
                !known.empty() ? known
                : it_.refused  ? "see docs/errors.md, 'Why a master does not vote'"
                               : "check that it runs, and check address, password and TLS";
            add(severity::broken,
                "reachable",
                (it_.refused ? "replies with an error: " : "not reachable: ") + it_.unreachable
                    + (it_.without_tls ? "; the server replies without TLS" : ""),
                std::string(it_.without_tls ? use_tls_or_not : remedy));
            return;
        }
        if (it_.is_sentinel()) {
            add(severity::broken, "role", "is a sentinel", "list the masters instead");
            return;
        }
        kind();
        version();
        role();
        memory();
        durability();
        permissions();
        replies();
        latency();
        record();
        transport();
    }

private:
    void add(severity level, std::string check, std::string what, std::string change = {}) {
        out_.push_back({level, std::move(check), it_.endpoint, std::move(what), std::move(change)});
    }

    void kind() {
        // An INFO that is refused says nothing about the kind of the server.
        if (it_["run_id"].empty() && it_.permissions.front().rule != "+info") {
            add(severity::broken,
                "proxy",
                "INFO has no run_id: a proxy, or not a Redis-compatible server",
                "connect to the server itself");
            return;
        }
        if (it_.run_id_of_other_connection != it_["run_id"]) {
            add(severity::broken,
                "proxy",
                "two connections to this address reached two servers: a load balancer or a proxy",
                "connect to one server, without a load balancer");
        }
        if (it_["cluster_enabled"] == "1") {
            const std::string& refusal =
                it_.write_refusal.empty() ? it_.script_refusal : it_.write_refusal;
            const bool works = refusal.empty();
            add(works ? severity::warning : severity::broken,
                "slots",
                fmt::format(
                    "is a node of a cluster: keys move with their hash slots, and a lock and the "
                    "memory record are in two slots{}",
                    works ? "" : " (" + refusal + ")"),
                "use servers with cluster-enabled no");
        } else if (it_["role"] == "slave" || it_["loading"] == "1") {
            return; // said by role()
        } else if (!it_.write_refusal.empty()) {
            const std::string_view known = remedy_of(it_.write_refusal);
            add(severity::broken,
                "writes",
                "refuses to set a key: " + it_.write_refusal,
                known.empty() ? "check its log; every lock is a write" : std::string(known));
        } else if (!it_.script_refusal.empty()) {
            add(severity::broken,
                "scripts",
                "refuses to run a script: " + it_.script_refusal,
                "check its log; redlock needs scripts");
        }
    }

    void version() {
        const bool valkey = !it_["valkey_version"].empty();
        const std::string text = it_["redis_version"];
        if (!valkey && !text.empty() && std::strtol(text.c_str(), nullptr, 10) < oldest_tested) {
            add(severity::warning,
                "version",
                fmt::format(
                    "is Redis {}: versions before {}.0 are not tested", text, oldest_tested),
                "upgrade it");
        }
    }

    void role() {
        if (it_["role"] == "slave") {
            add(severity::broken,
                "replication",
                fmt::format("is a replica of {}:{}", it_["master_host"], it_["master_port"]),
                "list an independent master, or REPLICAOF NO ONE; masters of a quorum share "
                "nothing");
        } else if (!it_["connected_slaves"].empty() && it_["connected_slaves"] != "0") {
            add(severity::warning,
                "replication",
                "has replicas (" + it_["connected_slaves"]
                    + "): a promoted replica may lack the last locks",
                "remove them, or never fail over to them (no Sentinel, no Kubernetes operator)");
        }
        const std::string promoted_from = it_["master_replid2"];
        if (it_["role"] == "master" && promoted_from.find_first_not_of('0') != std::string::npos) {
            add(severity::warning,
                "replication",
                "was a replica before, or has loaded the data of a server with replicas: it may "
                "have lost locks without a restart",
                "never make a voting master a replica; replace it by an empty server");
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
                limited ? "" : " once maxmemory is set"),
            "CONFIG SET maxmemory-policy noeviction");
    }

    void durability() {
        if (it_["aof_enabled"] == "1" && it_["aof_last_write_status"] == "err") {
            add(severity::broken,
                "persistence",
                "cannot write its append-only file",
                "check its disk");
        }
        // 0: all that has written there is without a quarantine, such as `doctor`.
        const milliseconds recorded = it_.record_quarantine.value_or(milliseconds(0));
        add(severity::note,
            "persistence",
            fmt::format(
                "{}; does not vote for {} after a restart",
                it_.keeps_locks()
                    ? "writes every lock to disk, so holders keep their locks over a restart"
                    : "may lose locks in a restart",
                duration_text(recorded.count() != 0 ? recorded : quarantine_of(how_))));
        if (it_["rdb_last_bgsave_status"] == "err") {
            add(severity::warning,
                "persistence",
                "its last snapshot failed, so it may refuse writes (stop-writes-on-bgsave-error)",
                "check its disk, or disable snapshots: save \"\"");
        }
    }

    enum class cause { command, keys, channels, unknown };

    static cause cause_of(std::string_view refusal) {
        const auto says = [&](std::string_view part) {
            return refusal.find(part) != std::string_view::npos;
        };
        return !refusal.starts_with("NOPERM") ? cause::unknown
               : !says(" access ")            ? cause::command
               : says("channel")              ? cause::channels
                                              : cause::keys;
    }

    // "+client|setname" allows CLIENT SETNAME.
    static std::string command_of(const std::string& rule) {
        std::string out = replaced(rule.substr(1), "|", " ");
        std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::toupper(c); });
        return out;
    }

    // The commands that are refused for this cause: those that every lock needs, or the others,
    // each with what does not work without it.
    std::string refused(cause why, bool needed) const {
        std::string out;
        std::string_view use;
        for (const permission& one : it_.permissions) {
            if (one.refusal.empty() || cause_of(one.refusal) != why || one.use.empty() != needed) {
                continue;
            }
            if (one.use != use) {
                out += use.empty() ? "" : fmt::format(" ({}),", use);
                use = one.use;
            }
            out += (out.empty() ? "" : " ")
                   + (why == cause::unknown ? command_of(one.rule) : one.rule);
        }
        return out + (use.empty() ? "" : fmt::format(" ({})", use));
    }

    void permissions() {
        for (const bool needed : {true, false}) {
            const severity level = needed ? severity::broken : severity::warning;
            const std::string_view which =
                needed ? "commands that every lock needs" : "optional commands";
            if (const std::string list = refused(cause::command, needed); !list.empty()) {
                add(level,
                    "acl",
                    fmt::format("the ACL refuses {}: {}", which, list),
                    acl_line(how_));
            }
            if (const std::string list = refused(cause::unknown, needed); !list.empty()) {
                add(level,
                    "commands",
                    fmt::format("does not know {}: {}", which, list),
                    std::string(missing_command));
            }
        }
        if (!refused(cause::keys, true).empty() || !refused(cause::keys, false).empty()) {
            add(severity::broken,
                "acl",
                fmt::format(
                    "the ACL refuses keys of locks: it must allow the keys {}*, to read and to "
                    "write",
                    how_.key_prefix),
                acl_line(how_));
        }
        if (!refused(cause::channels, false).empty()) {
            add(severity::warning,
                "acl",
                fmt::format(
                    "the ACL refuses channels of locks, so waiters poll: it must allow the "
                    "channels &{}*",
                    how_.key_prefix),
                acl_line(how_));
        }
    }

    void replies() {
        if (it_.not_understood.empty()) {
            return;
        }
        add(severity::warning,
            "replies",
            fmt::format(
                "its reply was not understood, so what this tests is unknown: {}",
                fmt::join(it_.not_understood, ", ")),
            "check that it is a Redis-compatible server, without a proxy that changes replies");
    }

    void latency() {
        if (it_.round_trips.empty()) {
            return;
        }
        const us median = it_.round_trips[it_.round_trips.size() / 2];
        const us limit = how_.master_timeout;
        const std::string what = fmt::format(
            "replies in {} (median), {} (longest of {})",
            latency_text(median),
            latency_text(it_.round_trips.back()),
            it_.round_trips.size());
        const std::string change = fmt::format(
            "move it closer, or increase master-timeout ({}) everywhere",
            duration_text(how_.master_timeout));
        if (median > limit) {
            add(severity::broken, "latency", what + ": later than master_timeout", change);
        } else if (median * 4 > limit) {
            add(severity::warning, "latency", what + ": near master_timeout", change);
        } else {
            add(severity::note, "latency", what);
        }
    }

    void record() {
        if (how_.protocol != redlock::protocol::guarded) {
            return;
        }
        if (it_.foreign_record) {
            const bool is_redis = !it_["run_id"].empty() && it_.not_understood.empty();
            add(severity::broken,
                "record",
                "its memory record '" + it_.record
                    + "' is of another version of redlock, or damaged",
                is_redis ? "see docs/operations.md, 'Times': a record of another version"
                         : "check that it is a Redis-compatible server");
        }
        // It keeps the longest quarantine that any client asked for.
        const milliseconds ours = quarantine_of(how_);
        if (how_.max_ttl.count() != 0 && it_.record_quarantine
            && *it_.record_quarantine > ours + milliseconds(1)) {
            add(severity::warning,
                "max_ttl",
                fmt::format(
                    "its memory record asks for a quarantine of {}, this command for {}: the "
                    "quorum's max_ttl is longer, or the clock options differ",
                    duration_text(*it_.record_quarantine),
                    duration_text(ours)),
                "leave --max-ttl out, here and in every client; to make the quorum's shorter: "
                "redlock "
                "members max-ttl "
                    + duration_text(how_.max_ttl));
        }
    }

    void transport() {
        if (where_.tls) {
            if (!how_.tls.verify) {
                add(severity::warning,
                    "tls",
                    "its certificate is not verified",
                    "remove --tls-insecure");
            }
            if (it_.certificate_left && *it_.certificate_left < certificate_soon) {
                add(severity::warning,
                    "tls",
                    fmt::format(
                        "its certificate expires in {} days", it_.certificate_left->count() / 24),
                    "renew it");
            }
        } else if (
            !is_local(where_)
            && !(where_.password.empty() && how_.password.empty() && how_.password_file.empty())) {
            add(severity::warning,
                "tls",
                "the password is sent over the network in clear text",
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

} // namespace cli
