#include "plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace simulation {

namespace {

constexpr std::array<std::string_view, fault_kinds> fault_names{
    "partition",      "refuse",       "break_late",   "break_lost",     "stall",
    "crash",          "flush",        "replace",      "step",           "pause",
    "suspend",        "client_crash", "client_close", "promote",        "take_over",
    "flush_db",       "script_flush", "reset_stats",  "reload",         "remove_keys",
    "refuse_publish", "end_pushes",   "evict",        "slow_handshake", "lie"};

constexpr std::array<std::string_view, 3> taking_names{"one", "all", "reading"};

std::string in_ms(nanos span) {
    return span == no_time ? "ever" : fmt::format("{:.2f}", static_cast<double>(span) / ms);
}

// Of an option that is used.
template <typename Value>
std::string option(bool used, std::string_view name, const Value& value) {
    return used ? fmt::format(", {} {}", name, value) : "";
}

std::string describe(const op& one) {
    std::string out = fmt::format(
        "    resource {} ({}), ttl {} ms, think {}, wait {}, hold {}",
        one.resource,
        to_string(one.how),
        one.ttl_ms,
        in_ms(one.think),
        one.wait_ms,
        in_ms(one.hold));
    for (const unsigned other : one.with) {
        out += option(true, "and resource", other);
    }
    out += option(one.downgrade_after != no_time, "downgraded after", in_ms(one.downgrade_after));
    out += option(one.slots != 0, "slots", one.slots) + option(one.slots != 0, "wants", one.wants);
    out += option(one.stop_margin_ms != 0, "stop margin", one.stop_margin_ms);
    out += option(one.max_hold_ms != 0, "max hold", one.max_hold_ms);
    out += option(one.cancel_after != no_time, "cancelled after", in_ms(one.cancel_after));
    for (const nanos after : one.extend_after) {
        out += fmt::format(", extended by {} after {}", one.extend_ttl_ms, in_ms(after));
    }
    for (const nanos after : one.write_after) {
        out += option(true, "writes after", in_ms(after));
    }
    for (const auto& [name, used] : std::initializer_list<std::pair<std::string_view, bool>>{
             {"renewed", one.renews},
             {"fencing", one.fences},
             {"fifo", one.fifo},
             {"own token", one.names_token},
             {"transferable", one.transferable},
             {"attached", one.attaches},
             {"never stops after a loss", one.after_loss == op::obedience::never},
             {"abandoned", one.end == op::ending::abandon},
             {"kept", one.end == op::ending::keep}}) {
        out += used ? ", " + std::string(name) : "";
    }
    out +=
        option(one.after_loss == op::obedience::later, "after a loss stops in", in_ms(one.lingers));
    return out + "\n";
}

} // namespace

std::string_view to_string(fault_kind kind) noexcept {
    return fault_names[static_cast<std::size_t>(kind)];
}

std::string_view to_string(taking how) noexcept {
    return taking_names[static_cast<std::size_t>(how)];
}

std::string_view to_string(wire kind) noexcept {
    return kind == wire::commands ? "commands" : "pushes";
}

std::size_t plan::resources() const noexcept {
    std::size_t count = 1;
    for_each_op(*this, [&](const client_plan&, const op& one) {
        count = std::max<std::size_t>({count, one.resource + 1, one.slots});
        for (const unsigned other : one.with) {
            count = std::max<std::size_t>(count, other + 1);
        }
    });
    return count;
}

std::int64_t plan::max_ttl_ms() const noexcept {
    std::int64_t largest = 0;
    for (const client_plan& client : clients) {
        const bool raises = client.change.starts_with('=');
        const std::int64_t wanted = raises ? std::stoll(client.change.substr(1)) : 0;
        largest = std::max({largest, client.max_ttl_ms, wanted});
    }
    return largest;
}

std::int64_t plan::ttl_limit_ms() const noexcept {
    std::int64_t smallest = max_ttl_ms();
    for (const client_plan& client : clients) {
        smallest = std::min(smallest, client.max_ttl_ms);
    }
    return smallest;
}

std::size_t plan::size() const noexcept {
    std::size_t count = faults.size() + clients.size();
    for_each_op(*this, [&](const client_plan&, const op&) { ++count; });
    return count;
}

void make_mistake(plan& what, mistake wrong) {
    what.wrong = wrong;
    if (wrong == mistake::fewer_masters) {
        what.clients.back().masters = (what.masters.size() + 1) / 2;
    }
}

std::string describe(const fault& one) {
    return fmt::format(
        "{} c{} m{}{} {}, for {} ms",
        to_string(one.kind),
        one.client,
        one.master,
        one.only ? " " + std::string(to_string(*one.only)) : "",
        one.amount,
        in_ms(one.span));
}

std::string describe(const plan& what) {
    std::string out = fmt::format(
        "seed {}, profile {}, drift {} ppm + {} ms, offsets within {} ms, master_timeout {} ms, "
        "delays {} to {} ms, pushes lost {} %\n",
        what.seed,
        what.profile,
        what.drift_ppb / 1000,
        what.drift_margin_ms,
        what.offset_bound_ms,
        what.master_timeout_ms,
        in_ms(what.air.delay_min),
        in_ms(what.air.delay_max),
        what.air.lost_pushes_percent);
    for (std::size_t i = 0; i < what.masters.size(); ++i) {
        const master_plan& one = what.masters[i];
        out += fmt::format(
            "  m{}: clock {} ppm, off by {} us, up for {} ms{}\n",
            i,
            one.rate_ppb / 1000,
            one.offset_us,
            in_ms(one.age),
            one.fsyncs ? ", appendfsync always" : "");
    }
    for (std::size_t i = 0; i < what.clients.size(); ++i) {
        const client_plan& one = what.clients[i];
        out += fmt::format(
            "  c{}: {}, clock {} ppm, max_ttl {} ms{}{}, local handoffs for {} ms{}\n",
            i,
            one.speaks == speech::plain ? "plain" : "guarded",
            one.rate_ppb / 1000,
            one.max_ttl_ms,
            one.takes_recorded ? " if it founds" : "",
            one.pushes ? ", pushes" : "",
            one.local_handoff_ms,
            one.change.empty() ? "" : ", change " + one.change);
        for (const std::vector<op>& worker : one.workers) {
            out += "   worker\n";
            for (const op& each : worker) {
                out += describe(each);
            }
        }
    }
    for (const fault& one : what.faults) {
        out += fmt::format("  at {}: {}\n", in_ms(one.at), describe(one));
    }
    return out;
}

} // namespace simulation
