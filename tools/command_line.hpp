// The command line, and what replaces a missing option: the environment, then a file.

#pragma once

#include "settings.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

/// What the user asked `redlock` to do. `read_command_line` fills in everything.
struct command_line {
    CLI::App app;
    settings common;
    /// Arguments after `--`, unchanged.
    std::vector<std::string> command;
    bool has_command = false;
    std::string config_file;

    command_line();
    command_line(const command_line&) = delete;
    command_line& operator=(const command_line&) = delete;

    /// Adds a command with its name, description and examples.
    CLI::App& add(const std::string& name, const std::string& what, const std::string& examples);
    /// Sets the function of a command. It returns the exit status.
    void when(CLI::App& asked, std::function<int()> what);

    struct action {
        CLI::App* asked;
        std::function<int()> what;
    };
    std::vector<action> actions;
};

/// The part of the command line that belongs to another program: "-- COMMAND [ARGS...]", "--
/// OPTIONS..." or nothing, according to the examples.
std::string_view tail_of(const CLI::App& app);

/// Reads all values in the order: command line, environment, file, default. Throws `failure`, or
/// `CLI::Success` for the help or the version.
void read_command_line(command_line& into, int argc, char** argv);

} // namespace cli
