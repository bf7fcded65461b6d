// The metrics as a page for Prometheus in the text exposition format 0.0.4: families of samples,
// each family in one piece, for any number of managers.

#include "prometheus.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

namespace {

using detail::exported;

using labels = std::vector<std::pair<std::string_view, std::string_view>>;

// Writes the samples of one family that belong to one manager.
class writer {
public:
    // `quorum` is the name of the manager's quorum.
    writer(std::string& out, std::string_view family, std::string_view quorum)
        : out_(out),
          family_(family),
          quorum_(escaped(quorum)) {}

    template <typename Value>
    void sample(Value value, const labels& of = {}, std::string_view suffix = {}) {
        const auto out = std::back_inserter(out_);
        fmt::format_to(out, "{}{}{{quorum=\"{}\"", family_, suffix, quorum_);
        for (const auto& [name, text] : of) {
            fmt::format_to(out, ",{}=\"{}\"", name, escaped(text));
        }
        fmt::format_to(out, "}} {}\n", number_of(value));
    }

    void sample(const histogram& times, const labels& of = {}) {
        labels bucket = of;
        std::string_view& bound = bucket.emplace_back("le", "").second;
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < histogram::bounds.size(); ++i) {
            sum += times.counts()[i];
            const std::string text = fmt::format("{}", number_of(histogram::bounds[i]));
            bound = text;
            sample(sum, bucket, "_bucket");
        }
        bound = "+Inf";
        sample(times.count(), bucket, "_bucket");
        sample(times.sum(), of, "_sum");
        sample(times.count(), of, "_count");
    }

private:
    // Some values come from the network, and a value that is not UTF-8 would make the whole page
    // invalid.
    static std::string escaped(std::string_view text) {
        std::string out;
        for (const char c : text) {
            const auto byte = static_cast<unsigned char>(c);
            if (c == '"' || c == '\\') {
                out += '\\';
                out += c;
            } else if (c == '\n') {
                out += "\\n";
            } else if (byte < 0x20 || byte > 0x7e) {
                fmt::format_to(std::back_inserter(out), "\\\\x{:02x}", byte);
            } else {
                out += c;
            }
        }
        return out;
    }
    template <typename Number>
    static auto number_of(Number value) {
        return +value; // of a bool 0 or 1
    }
    template <typename Number, typename Period>
    static double number_of(std::chrono::duration<Number, Period> time) {
        return std::chrono::duration<double>(time).count();
    }

    std::string& out_;
    std::string_view family_;
    std::string quorum_;
};

struct family {
    std::string_view name; // "..._total": a counter
    std::string_view help;
    void (*write)(writer&, const exported&);
    std::string_view type = name.ends_with("_total") ? "counter" : "gauge";
};

// The value of a member of the metrics, the health or the settings; of each master, if it is one of
// a master.
template <auto Member>
void value(writer& out, const exported& from) {
    using member = decltype(Member);
    if constexpr (std::is_invocable_v<member, const metrics&>) {
        out.sample(from.counted.*Member);
    } else if constexpr (std::is_invocable_v<member, const health&>) {
        out.sample(from.now.*Member);
    } else if constexpr (std::is_invocable_v<member, const config&>) {
        out.sample(from.settings.*Member);
    } else {
        for (const master_metrics& one : from.counted.masters) {
            out.sample(one.*Member, {{"master", one.endpoint}});
        }
    }
}

void acquires(writer& out, const exported& from) {
    out.sample(from.counted.acquired, {{"outcome", "acquired"}});
    for (const errc error :
         {errc::contended, errc::no_quorum, errc::validity_exhausted, errc::wait_timed_out}) {
        out.sample(from.counted.failed[error], {{"outcome", to_string(error)}});
    }
    out.sample(from.counted.cancelled, {{"outcome", "cancelled"}});
}

void renewals(writer& out, const exported& from) {
    out.sample(from.counted.renewed, {{"outcome", "renewed"}});
    out.sample(from.counted.renewals_failed, {{"outcome", "failed"}});
}

void losses(writer& out, const exported& from) {
    for (std::size_t i = 0; i <= static_cast<std::size_t>(loss_reason::stalled); ++i) {
        const auto reason = static_cast<loss_reason>(i);
        if (reason != loss_reason::none) {
            out.sample(from.counted.lost[reason], {{"reason", to_string(reason)}});
        }
    }
}

void releases(writer& out, const exported& from) {
    using enum release_result;
    out.sample(from.counted.released[released], {{"result", "released"}});
    out.sample(
        from.counted.released[expired] + from.counted.released[stolen], {{"result", "late"}});
    out.sample(from.counted.released[uncertain], {{"result", "uncertain"}});
}

void votes(writer& out, const exported& from) {
    const std::pair<std::string_view, counts_per<vote::duplicate> master_metrics::*> operations[] =
        {
            {"acquire", &master_metrics::acquire_votes},
            {"extend", &master_metrics::extend_votes},
            {"release", &master_metrics::release_votes},
        };
    for (const master_metrics& one : from.counted.masters) {
        for (const auto& [operation, member] : operations) {
            for (std::size_t i = 0; i <= static_cast<std::size_t>(vote::duplicate); ++i) {
                const auto kind = static_cast<vote>(i);
                if (kind != vote::pending) { // not a vote yet
                    out.sample(
                        (one.*member)[kind],
                        {{"master", one.endpoint},
                         {"operation", operation},
                         {"vote", to_string(kind)}});
                }
            }
        }
    }
}

void size(writer& out, const exported& from) {
    out.sample(from.now.masters.size());
}

void members(writer& out, const exported& from) {
    out.sample(from.now.members.size());
}

void config_info(writer& out, const exported& from) {
    out.sample(
        1,
        {{"key_prefix", from.settings.key_prefix},
         {"protocol", to_string(from.settings.protocol)}});
}

void quarantine_off(writer& out, const exported& from) {
    out.sample(!from.settings.quarantine);
}

// One series for each state, so that a query does not need numbers.
void states(writer& out, const exported& from) {
    for (const master_health& one : from.now.masters) {
        for (std::size_t i = 0; i <= static_cast<std::size_t>(master_state::ineligible); ++i) {
            const auto state = static_cast<master_state>(i);
            out.sample(one.state == state, {{"master", one.endpoint}, {"state", to_string(state)}});
        }
    }
}

void quarantines(writer& out, const exported& from) {
    for (const master_health& one : from.now.masters) {
        const auto left = one.quarantine_left.value_or(std::chrono::milliseconds(0));
        out.sample(left, {{"master", one.endpoint}});
    }
}

void infos(writer& out, const exported& from) {
    for (const master_health& one : from.now.masters) {
        if (!one.version.empty()) {
            out.sample(
                1,
                {{"master", one.endpoint},
                 {"version", one.version},
                 {"run_id", one.run_id},
                 {"compare_and_delete", one.compare_and_delete}});
        }
    }
}

// The help has no line breaks and no backslashes, which would need escaping.
constexpr family families[] = {
    {"redlock_acquires_total", "Finished acquires, by outcome.", acquires},
    {"redlock_acquire_wait_seconds",
     "Time from the start of an acquire to its lock; successful ones only.",
     value<&metrics::acquire_wait>,
     "histogram"},
    {"redlock_acquires_waiting", "Acquires in flight.", value<&metrics::waiting>},
    {"redlock_attempts_total", "Attempts started.", value<&metrics::attempts>},
    {"redlock_fencing_raises_total",
     "Attempts that needed a second round trip for their fencing token.",
     value<&metrics::raised>},
    {"redlock_locks_held", "Locks held.", value<&metrics::held>},
    {"redlock_hold_seconds",
     "Time from an acquire to its release or loss.",
     value<&metrics::hold>,
     "histogram"},
    {"redlock_local_handoffs_total",
     "Leases passed to a waiter of this process without a round trip.",
     value<&metrics::local_handoffs>},
    {"redlock_renewals_total", "Finished extensions, by outcome.", renewals},
    {"redlock_losses_total", "Held locks that were lost, by reason.", losses},
    {"redlock_releases_total", "Finished releases, by result.", releases},
    {"redlock_pending_removals",
     "Removals that wait for a master that is away or slow.",
     value<&metrics::pending_removals>},
    {"redlock_removals_repeated_total",
     "Removals sent again after a connection had broken.",
     value<&metrics::removals_repeated>},
    {"redlock_release_notifications_total",
     "Release notifications received.",
     value<&metrics::release_notifications>},
    {"redlock_notification_connections",
     "Masters whose notifications can be received.",
     value<&metrics::notification_connections>},
    {"redlock_subscriptions",
     "Locks whose release notifications are subscribed to.",
     value<&metrics::subscriptions>},
    {"redlock_observer_errors_total",
     "Exceptions thrown by the observer.",
     value<&metrics::observer_errors>},
    {"redlock_ready", "1 if a majority of the masters is admitted.", value<&health::ready>},
    {"redlock_masters", "Configured masters.", size},
    {"redlock_masters_admitted", "Masters that may vote.", value<&health::admitted>},
    {"redlock_votes_needed", "Votes needed for a majority.", value<&health::quorum>},
    {"redlock_members", "Members of the quorum by their own records; 0 if not known.", members},
    {"redlock_members_generation",
     "How often the members were changed, plus 1; 0 if not known.",
     value<&health::generation>},
    {"redlock_quarantine_off",
     "1 if restarted masters vote at once, which is unsafe.",
     quarantine_off},
    {"redlock_max_ttl_seconds",
     "The longest ttl, as configured: the same in all processes.",
     value<&health::max_ttl>},
    {"redlock_quarantine_seconds",
     "Time during which a restarted master does not vote.",
     value<&health::quarantine_time>},
    {"redlock_master_timeout_seconds",
     "Time without a reply after which a master is ignored, as configured.",
     value<&config::master_timeout>},
    {"redlock_config_info", "Other configuration, as labels; always 1.", config_info},
    {"redlock_master_state", "1 for the state that the master is in, else 0.", states},
    {"redlock_master_quarantine_left_seconds",
     "Time until the master may vote again; 0 if it is not in quarantine.",
     quarantines},
    {"redlock_master_info", "Information about the server, as labels; always 1.", infos},
    {"redlock_master_latency_seconds",
     "Time from an acquire or extend command to its reply.",
     value<&master_metrics::latency>,
     "histogram"},
    {"redlock_master_votes_total", "Votes of the master, by operation and kind.", votes},
    {"redlock_master_commands_total", "Commands sent.", value<&master_metrics::commands>},
    {"redlock_master_writes_total", "Writes to the socket.", value<&master_metrics::writes>},
    {"redlock_master_sent_bytes_total",
     "Bytes written to the socket.",
     value<&master_metrics::bytes_sent>},
    {"redlock_master_received_bytes_total",
     "Bytes read from the socket.",
     value<&master_metrics::bytes_received>},
    {"redlock_master_connects_total", "Connections established.", value<&master_metrics::connects>},
    {"redlock_master_disconnects_total",
     "Established connections that were lost.",
     value<&master_metrics::disconnects>},
    {"redlock_master_late_commands_total",
     "Commands that arrived too late and were refused.",
     value<&master_metrics::late>},
    {"redlock_master_healed_keys_total",
     "Missing keys that were created again by an extension.",
     value<&master_metrics::healed>},
    {"redlock_master_publish_refused_total",
     "Releases whose PUBLISH the server refused.",
     value<&master_metrics::publish_refused>},
};

} // namespace

std::string detail::page_of(std::span<const exported> managers) {
    std::string out;
    for (const family& one : families) {
        fmt::format_to(
            std::back_inserter(out),
            "# HELP {0} {1}\n# TYPE {0} {2}\n",
            one.name,
            one.help,
            one.type);
        for (const exported& manager : managers) {
            writer samples(out, one.name, manager.quorum);
            one.write(samples, manager);
        }
    }
    return out;
}

std::string to_prometheus(std::span<const prometheus_source> managers) {
    std::vector<exported> all;
    for (const auto& [quorum, manager] : managers) {
        all.push_back(
            {quorum,
             manager->get_metrics(),
             manager->get_health(),
             detail::shared_manager(*manager).configuration()});
    }
    return detail::page_of(all);
}

std::string to_prometheus(const lock_manager& manager, std::string_view quorum) {
    const prometheus_source only[] = {{std::string(quorum), &manager}};
    return to_prometheus(only);
}

}} // namespace redlock::REDLOCK_ABI
