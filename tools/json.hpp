// What was found, as JSON for other programs.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/metrics.hpp>

#include <nlohmann/json.hpp>

namespace cli {

// Members stand in the order in which they are written here.
using json = nlohmann::ordered_json;

json json_of(const redlock::diagnostics& it);
json json_of(const redlock::lock_status& it);

/// One line on standard output. Text from the network may be anything: what is not UTF-8 is
/// replaced.
void print(const json& it);

} // namespace cli
