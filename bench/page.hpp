// One self-contained HTML file that draws what was measured. It loads nothing from the network.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace bench {

// The page of a report, in the form that `--json` writes. Text of the report is data on the page
// and never markup, whatever it holds.
std::string page_of(const nlohmann::json& report);

// One report of several files: the tables, targets and failures of the later ones follow those of
// the first; quick if one of them is; everything else from the first. Throws std::runtime_error
// if a file cannot be read or is not a report.
nlohmann::json read_reports(const std::vector<std::string>& files);

// Throws std::runtime_error if the file cannot be written. "-" is the standard output.
void write_page(const std::string& file, const nlohmann::json& report);

} // namespace bench
