// The words of the command line, as completions and manual pages list them.

#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace cli {

/// An option that the help of its command lists.
struct listed_option {
    std::string name;   ///< --ttl
    std::string letter; ///< -E; empty if there is none
    std::string what;
    std::string value; ///< DURATION; empty for a flag
    std::string usual;
    /// What a value may be, as far as it can be listed: "none" and "forever" of
    /// none|DURATION|forever.
    std::vector<std::string> values;
    bool file = false;
};

/// The kind of its values, such as DURATION.
std::string kind_of(const CLI::Option& option);

std::vector<listed_option> options_listed(const CLI::App& app);

/// Returns the values of the first argument, if they can be listed.
std::vector<std::string> arguments_of(const CLI::App& app);

std::vector<const CLI::App*> apps_of(const CLI::App& app);

/// Whether the command runs another one, after a `--`.
bool runs_a_command(const CLI::App& app);

/// Returns `text` with each `what` in it replaced.
std::string replaced(std::string text, std::string_view what, std::string_view with);

} // namespace cli
