#include "figures.hpp"

#include <fmt/format.h>

namespace simulation {

std::string figures::describe() const {
    std::string out = fmt::format(
        "{} seeds, {:.2f} simulated hours, {} commands ({} late)\n"
        "  {} attempts: {} acquired ({} with a fencing token, {} by local handoff)\n"
        "  {} extended, {} lost; {} notifications; {} writes, {} refused\n"
        "  faults:",
        seeds,
        static_cast<double>(simulated) / (3600.0 * static_cast<double>(sec)),
        commands,
        late_commands,
        attempts,
        acquired,
        fenced,
        local_handoffs,
        extended,
        lost,
        pushes,
        writes,
        refused_writes);
    for (std::size_t i = 0; i < fault_kinds; ++i) {
        if (faults[i] != 0) {
            out += fmt::format(" {} {}", to_string(static_cast<fault_kind>(i)), faults[i]);
        }
    }
    return out + fmt::format("\n  {} overlaps, {} inversions", overlaps, inversions);
}

} // namespace simulation
