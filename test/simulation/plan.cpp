#include "plan.hpp"

#include <algorithm>
#include <array>

namespace simulation {

namespace {

constexpr std::array<std::string_view, fault_kinds> fault_names{
    "partition",      "refuse",       "break_late",   "break_lost",    "stall",
    "crash",          "flush",        "replace",      "step",          "pause",
    "suspend",        "client_crash", "client_close", "promote",       "take_over",
    "flush_db",       "script_flush", "reset_stats",  "reload",        "remove_keys",
    "refuse_publish", "end_pushes",   "evict",        "slow_handshake"};

constexpr std::array<std::string_view, 3> taking_names{"one", "all", "reading"};

constexpr std::array<std::string_view, mistakes> mistake_names{
    "none",
    "fewer-masters",
    "monotonic-clock",
    "believes-while-releasing",
    "believes-until-told",
    "no-quarantine"};

std::string in_ms(nanos span) {
    if (span == no_time) {
        return "ever";
    }
    const nanos hundredths = span / (10 * us);
    std::string part = std::to_string(hundredths % 100);
    return std::to_string(hundredths / 100) + "." + (part.size() < 2 ? "0" : "") + part;
}

void describe_op(std::string& out, const op& one) {
    out += "    resource " + std::to_string(one.resource);
    for (const unsigned other : one.with) {
        out += " and " + std::to_string(other);
    }
    out += one.how == taking::one ? "" : " (" + std::string(to_string(one.how)) + ")";
    out += one.downgrade_after == no_time ? "" : ", downgraded after " + in_ms(one.downgrade_after);
    out += one.slots == 0
               ? ""
               : ", " + std::to_string(one.wants) + " of " + std::to_string(one.slots) + " slots";
    out += ", ttl " + std::to_string(one.ttl_ms) + " ms, think " + in_ms(one.think) + ", wait "
           + std::to_string(one.wait_ms) + ", hold " + in_ms(one.hold)
           + (one.renews ? ", renewed" : ", not renewed");
    if (one.fences) {
        out += ", fencing";
    }
    if (one.stop_margin_ms != 0) {
        out += ", stop margin " + std::to_string(one.stop_margin_ms);
    }
    if (one.max_hold_ms != 0) {
        out += ", max hold " + std::to_string(one.max_hold_ms);
    }
    if (one.cancel_after != no_time) {
        out += ", cancelled after " + in_ms(one.cancel_after);
    }
    for (const nanos after : one.extend_after) {
        out += ", extended by " + std::to_string(one.extend_ttl_ms) + " after " + in_ms(after);
    }
    for (const nanos after : one.write_after) {
        out += ", writes after " + in_ms(after);
    }
    out += one.fifo ? ", fifo" : "";
    out += one.names_token ? ", own token" : "";
    out += one.transferable ? ", transferable" : "";
    out += one.attaches ? ", attached" : "";
    out += one.after_loss == op::obedience::at_once ? ""
           : one.after_loss == op::obedience::later
               ? ", stops " + in_ms(one.lingers) + " after a loss"
               : ", never stops after a loss";
    out += one.end == op::ending::release   ? ", released\n"
           : one.end == op::ending::abandon ? ", abandoned\n"
                                            : ", kept\n";
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

std::string_view to_string(mistake what) noexcept {
    return mistake_names[static_cast<std::size_t>(what)];
}

std::size_t plan::resources() const noexcept {
    std::size_t count = 1;
    for (const client_plan& client : clients) {
        for (const std::vector<op>& worker : client.workers) {
            for (const op& one : worker) {
                count = std::max<std::size_t>({count, one.resource + 1, one.slots});
                for (const unsigned other : one.with) {
                    count = std::max<std::size_t>(count, other + 1);
                }
            }
        }
    }
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
    for (const client_plan& client : clients) {
        for (const std::vector<op>& worker : client.workers) {
            count += worker.size();
        }
    }
    return count;
}

void make_mistake(plan& what, mistake wrong) {
    what.wrong = wrong;
    if (wrong == mistake::fewer_masters) {
        what.clients.back().masters = (what.masters.size() + 1) / 2;
    }
}

std::string describe(const plan& what) {
    std::string out = "seed " + std::to_string(what.seed) + ", profile " + what.profile + ", drift "
                      + std::to_string(what.drift_ppb / 1000) + " ppm + "
                      + std::to_string(what.drift_margin_ms) + " ms, offsets within "
                      + std::to_string(what.offset_bound_ms) + " ms, master_timeout "
                      + std::to_string(what.master_timeout_ms) + " ms, delays "
                      + in_ms(what.air.delay_min) + " to " + in_ms(what.air.delay_max) + " ms";
    out += what.air.lost_pushes_percent == 0
               ? "\n"
               : ", pushes lost " + std::to_string(what.air.lost_pushes_percent) + " %\n";
    if (what.wrong != mistake::none) {
        out += "deliberate mistake: " + std::string(to_string(what.wrong)) + "\n";
    }
    for (std::size_t i = 0; i < what.masters.size(); ++i) {
        const master_plan& one = what.masters[i];
        out += "  m" + std::to_string(i) + ": clock " + std::to_string(one.rate_ppb / 1000)
               + " ppm, off by " + std::to_string(one.offset_us) + " us, up for " + in_ms(one.age)
               + " ms" + (one.fsyncs ? ", appendfsync always" : "") + "\n";
    }
    for (std::size_t i = 0; i < what.clients.size(); ++i) {
        const client_plan& one = what.clients[i];
        out += "  c" + std::to_string(i) + ": "
               + (one.speaks == speech::plain ? "plain" : "guarded") + ", clock "
               + std::to_string(one.rate_ppb / 1000) + " ppm, max_ttl "
               + std::to_string(one.max_ttl_ms) + " ms"
               + (one.takes_recorded ? " if it founds" : "") + (one.pushes ? ", pushes" : "")
               + ", local handoffs for " + std::to_string(one.local_handoff_ms) + " ms"
               + (one.change.empty() ? "" : ", change " + one.change) + "\n";
        for (const std::vector<op>& worker : one.workers) {
            out += "   worker\n";
            for (const op& each : worker) {
                describe_op(out, each);
            }
        }
    }
    for (const fault& one : what.faults) {
        out += "  at " + in_ms(one.at) + " for " + in_ms(one.span) + ": "
               + std::string(to_string(one.kind));
        out += one.client < 0 ? "" : " c" + std::to_string(one.client);
        out += one.master < 0 ? "" : " m" + std::to_string(one.master);
        out += one.only ? " " + std::string(to_string(*one.only)) : "";
        out += " " + std::to_string(one.amount) + "\n";
    }
    return out;
}

} // namespace simulation
