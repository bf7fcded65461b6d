#include "hints.hpp"

#include "admin/connection.hpp"
#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <map>
#include <string_view>
#include <utility>

namespace cli {
namespace {

// Whether a server replies to a PING without TLS. No password is sent.
bool replies_without_tls(redlock::endpoint where, redlock::config how) {
    where.tls = false;
    where.password = how.password = how.password_file = {};
    where.database = 0;
    try {
        redlock::detail::connection(where, how).ask({"PING"});
        return true; // also an error such as NOAUTH
    } catch (const redlock::detail::connection_error&) {
        return false;
    }
}

// A line for each key of another type on one master.
std::vector<std::string>
wrong_types(const redlock::endpoint& where, const redlock::config& how, std::string_view resource) {
    std::vector<std::string> out;
    try {
        redlock::detail::connection master(where, how);
        const redlock::detail::lock_keys keys = redlock::detail::keys_of(how, resource);
        const std::pair<std::string_view, std::string_view> types[] = {// as TYPE names them
                                                                       {keys.lock, "string"},
                                                                       {keys.fence, "string"},
                                                                       {keys.readers, "zset"},
                                                                       {keys.intent, "string"},
                                                                       {keys.queue, "zset"},
                                                                       {keys.queue_until, "zset"}};
        for (const auto& [key, needed] : types) {
            const redlock::detail::reply type = master.ask({"TYPE", key});
            if (type.type == redlock::core::reply_type::status && type.text != "none"
                && type.text != needed) {
                out.push_back(fmt::format(
                    "the key {0} has the type {1}, a lock needs {2}; if no other program uses it: "
                    "DEL {0}",
                    printable(key),
                    printable(type.text),
                    needed));
            }
        }
    } catch (const redlock::detail::connection_error&) { // reported by the command
        out.clear();
    }
    return out;
}

bool is_type_error(std::string_view text) {
    return text.find("WRONGTYPE") != std::string_view::npos;
}

} // namespace

std::string_view remedy_of(std::string_view cause) noexcept {
    struct row {
        std::string_view part;
        std::string_view remedy;
    };
    constexpr std::string_view login =
        "correct the user and the password: --username, --password-file, or in its URL; give none "
        "if it has none";
    constexpr std::string_view cluster = "it is a node of a cluster: use servers with "
                                         "cluster-enabled no";
    constexpr std::string_view permission =
        "its ACL lacks a permission: redlock doctor --notes prints a line that is sufficient; ACL "
        "LOG there shows what it refused";
    constexpr std::string_view own_certificate =
        "use a certificate that it accepts: --tls-certificate-file and --tls-private-key-file";
    static constexpr std::array rows{
        row{"OOM command not allowed",
            "maxmemory is reached, so new locks are refused; held locks can be extended and "
            "released. Delete other data, or raise the limit: CONFIG SET maxmemory"},
        row{"BUSY ",
            "wait until its script or function has ended, or end it: SCRIPT KILL or FUNCTION "
            "KILL; one that has written can only be waited for"},
        row{"LOADING", "wait until it has loaded its data"},
        row{"NOREPLICAS",
            "its writes need replicas that it does not have: CONFIG SET min-replicas-to-write 0"},
        row{"READONLY", "it is a replica: list an independent master, or REPLICAOF NO ONE"},
        row{"MISCONF", "it cannot save its data: check its disk and its log"},
        row{cluster, ""}, // the text says it
        row{"CROSSSLOT", cluster},
        row{"CLUSTERDOWN", cluster},
        row{"MOVED ", cluster},
        row{"nknown command", missing_command},
        row{"Unknown Redis command", missing_command}, // in a script of Redis 7.0
        row{"NOPERM", permission},
        row{"The user executing the script can't", permission}, // the same
        row{"ACL failure in script", permission},
        row{"cannot use ", "correct its name, or make it usable and readable for this user"},
        row{"it belongs to that of",
            "correct --masters, or change the members by `redlock members add`, `remove` or "
            "`replace` (a quorum of one master cannot grow); if the recorded list is wrong, see "
            "docs/operations/masters.md, 'Another list from the start'"},
        row{"rediss://", "write rediss:// in place of redis://"},
        row{"DENIED", "set a password there (requirepass), and give it to all clients"},
        row{"max number of clients", "raise maxclients there; CLIENT LIST shows its clients"},
        row{"WRONGPASS", login},
        row{"AUTH", login},
        row{"refused", "start it; check its port, its bind address and firewalls"},
        row{"Host not found", "correct the host in its URL, or the resolver"},
        row{"may require a certificate", own_certificate},
        row{"alert certificate", own_certificate},
        row{"alert bad certificate", own_certificate},
        row{"alert unknown ca", own_certificate},
        row{"certificate has expired", "renew its certificate"},
        row{"certificate", "correct --tls-ca-file, --tls-server-name or the host in its URL"},
        row{"connect_timeout",
            "check that a server listens there and is not stopped; if it is far away, increase "
            "--connect-timeout"},
        row{"not connected yet",
            "no reply yet: check that the server runs and is not stopped, and for rediss:// that "
            "it uses TLS"},
        row{"malformed reply", "correct the port: this is not a Redis server"},
        row{"the quorum's max_ttl", "use a shorter --ttl, or `redlock members max-ttl`"},
        row{"lost its memory record",
            "if it stays so, too few masters have theirs: see "
            "docs/operations/masters.md, 'Another list from the start'"},
        row{"DB index", "correct the database in its URL, or raise databases there"},
    };
    const auto found = std::ranges::find_if(
        rows, [&](const row& one) { return cause.find(one.part) != std::string_view::npos; });
    return found != rows.end() ? found->remedy : std::string_view();
}

std::string_view remedy_of(std::string_view cause, const redlock::endpoint& where) noexcept {
    if (where.path.empty() || !cause.starts_with("connect: ")) {
        return remedy_of(cause);
    }
    return cause.find("Permission denied") != std::string_view::npos
               ? "allow this user to write to the socket: unixsocketperm in its configuration, or "
                 "a group of both; its directories must also be accessible"
               : "start it; correct the path: it must be that of unixsocket in its configuration";
}

void hint_at_causes(const redlock::config& how, const std::vector<std::string>& texts) {
    std::map<std::string_view, std::vector<std::string>> masters_of; // by remedy
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (const std::string_view remedy = remedy_of(texts[i], how.masters[i]); !remedy.empty()) {
            masters_of[remedy].push_back(to_string(how.masters[i]));
        }
    }
    for (const auto& [remedy, masters] : masters_of) {
        say(fmt::format("on {}: {}", fmt::join(masters, ", "), remedy));
    }
}

std::vector<std::size_t>
masters_without_tls(const redlock::config& how, const std::vector<std::size_t>& unreachable) {
    std::vector<std::pair<std::size_t, std::future<bool>>> all;
    for (const std::size_t i : unreachable) {
        if (how.masters[i].tls) {
            all.emplace_back(
                i, std::async(std::launch::async, replies_without_tls, how.masters[i], how));
        }
    }
    std::vector<std::size_t> out;
    for (auto& [number, replied] : all) {
        if (replied.get()) {
            out.push_back(number);
        }
    }
    return out;
}

void say_without_tls(const std::vector<std::string>& masters) {
    say(fmt::format("{} replied without TLS: {}", fmt::join(masters, ", "), use_tls_or_not));
}

void hint_at_types(const redlock::config& how, const std::string& resource) {
    std::vector<std::future<std::vector<std::string>>> all;
    all.reserve(how.masters.size());
    for (const redlock::endpoint& one : how.masters) {
        all.push_back(
            std::async(std::launch::async, [&] { return wrong_types(one, how, resource); }));
    }
    std::map<std::string, std::vector<std::string>> masters_of; // by line
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (const std::string& line : all[i].get()) {
            masters_of[line].push_back(to_string(how.masters[i]));
        }
    }
    for (const auto& [line, masters] : masters_of) {
        say(fmt::format("on {}: {}", fmt::join(masters, ", "), line));
    }
}

namespace {

// Prints which masters do not use TLS although their URLs do, if there are any.
void hint_at_tls(const redlock::config& how, const std::vector<std::size_t>& unreachable) {
    std::vector<std::string> names;
    for (const std::size_t one : masters_without_tls(how, unreachable)) {
        names.push_back(to_string(how.masters[one]));
    }
    if (!names.empty()) {
        say_without_tls(names);
    }
}

// `votes`: of an acquire or a query. `shows_type`: whether a vote means a key of another type,
// which its text need not say.
template <typename Votes, typename F>
void hint_at(
    const redlock::config& how,
    const std::string& resource,
    const Votes& votes,
    bool causes,
    F shows_type) {
    if (std::ranges::any_of(
            votes, [&](const auto& one) { return shows_type(one) || is_type_error(one.text); })) {
        hint_at_types(how, resource);
    }
    std::vector<std::size_t> unreachable;
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < votes.size(); ++i) {
        if (votes[i].vote == redlock::vote::unreachable) {
            unreachable.push_back(i);
        }
        texts.push_back(votes[i].text);
    }
    if (causes) {
        hint_at_causes(how, texts);
    }
    hint_at_tls(how, unreachable);
}

} // namespace

void hint_at_votes(
    const redlock::config& how,
    const std::string& resource,
    const redlock::diagnostics& why,
    bool causes) {
    if (why.votes.empty() && !remedy_of(why.message).empty()) {
        say(std::string(remedy_of(why.message)));
    }
    // Of another owner's key an acquire without a fencing token learns neither the type nor the
    // rest of the lease.
    hint_at(how, resource, why.votes, causes, [](const redlock::master_vote& one) {
        return one.vote == redlock::vote::owned_by_other
               || (one.vote == redlock::vote::held && !one.time_left);
    });
}

void hint_at_status(
    const redlock::config& how, const std::string& resource, const redlock::lock_status& found) {
    hint_at(how, resource, found.masters, true, [](const auto&) { return false; });
    const std::size_t slot = resource.rfind(":slot:"); // as messages name it
    if (slot != std::string::npos && found.slots.empty()) {
        say(fmt::format(
            "if '{}' is a slot of a pool: redlock status --slots L {}",
            printable(resource),
            printable(resource.substr(0, slot))));
    }
}

} // namespace cli
