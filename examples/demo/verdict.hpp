// Whether the locks did what they are for, in figures.
#pragma once

#include "board.hpp"
#include "plan.hpp"
#include "screen.hpp"
#include "settings.hpp"

#include <string>

namespace demo {

struct verdict {
    bool passed = false;
    std::string text; // several lines
};

// `worker_failure` is empty if all workers ended in good order.
verdict judge(
    const board& shared,
    const plan& faults,
    const std::string& worker_failure,
    const settings& chosen,
    const screen& output);

} // namespace demo
