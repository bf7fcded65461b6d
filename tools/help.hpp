// The help of the command line.

#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace cli {

class help_formatter : public CLI::Formatter {
public:
    /// Of redlock itself: what it is, how it is used, the commands, then the options of all.
    std::string
    make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
    std::string make_usage(const CLI::App* app, std::string name) const override;
    std::string make_option_opts(const CLI::Option* one) const override;
    std::string make_option_desc(const CLI::Option* one) const override;
};

/// Makes `--help` of `help`, and `COMMAND --help` of `help COMMAND`, as git and docker have them.
void take_help(std::vector<std::string>& words, const CLI::App& app);

} // namespace cli
