// The words of the command line, and what comes in their place: the environment, then a file.

#pragma once

#include "settings.hpp"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

/// What `redlock` was asked to do. All of it is filled by `read_command_line`.
struct command_line {
    CLI::App app;
    settings common;
    /// What comes behind `--`, untouched.
    std::vector<std::string> command;
    bool has_command = false;
    std::string config_file;

    command_line();
    command_line(const command_line&) = delete;
    command_line& operator=(const command_line&) = delete;

    /// A command whose name, sentence and examples these are.
    CLI::App& add(const std::string& name, const std::string& what, const std::string& examples);
    /// What to do when it is asked for. The status is that of the program.
    void when(CLI::App& asked, std::function<int()> what);

    struct action {
        CLI::App* asked;
        std::function<int()> what;
    };
    std::vector<action> actions;
};

/// What of its command line is not the tool's own: "-- COMMAND [ARGS...]", "-- OPTIONS..." for
/// another program's, or nothing. Its examples show which.
std::string_view tail_of(const CLI::App& app);

/// \name What a value may be, said as the library says it
/// \{
CLI::Validator one_of(std::vector<std::string> words);
CLI::Validator whole_number(std::size_t low, std::size_t high);
CLI::Validator number_between(double low, double high);
/// \}

/// What the option library found wrong, in the words of all other refusals.
std::string sentence_of(const CLI::Error& error);

/// An option whose value is a duration.
CLI::Option*
add_duration(CLI::App& app, const std::string& name, milliseconds& into, const std::string& what);

/// --ttl. Not given it is `usual_ttl`.
void add_ttl(CLI::App& app, milliseconds& into, const std::string& what);

/// RESOURCE, --ttl, --wait and the like.
void add_wishes(CLI::App& app, lock_wishes& into, const std::string& usual_wait);

/// RESOURCE alone.
void add_resource(CLI::App& app, std::string& into);

/// Reads it all, in the order: command line, environment, file, default. Throws `failure`, or
/// `CLI::Success` where help or the version was asked for.
void read_command_line(command_line& into, int argc, char** argv);

} // namespace cli
