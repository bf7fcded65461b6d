// Results as JSON for other programs.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/metrics.hpp>

#include <nlohmann/json.hpp>

namespace cli {

// Members keep the order in which they are written here.
using json = nlohmann::ordered_json;

json json_of(const redlock::diagnostics& it);
json json_of(const redlock::lock_status& it);

/// Prints one line on standard output. Text from the network may be anything: bytes that are not
/// UTF-8 are replaced.
void print(const json& it);

} // namespace cli
