// `redlock metrics`: exports a quorum for Prometheus.

#pragma once

namespace cli {

struct command_line;

void add_metrics(command_line& to);

} // namespace cli
