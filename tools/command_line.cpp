#include "command_line.hpp"

#include "exit_code.hpp"
#include "help.hpp"
#include "options.hpp"
#include "refusals.hpp"
#include "resolution.hpp"

#include <redlock/version.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace cli {

command_line::command_line()
    : app("A lock on a majority of independent Redis masters, for the command line.", "redlock") {
    app.formatter(std::make_shared<help_formatter>());
    app.get_formatter()->column_width(30);
    app.fallthrough();
    app.require_subcommand(1);
    app.set_version_flag("--version", REDLOCK_VERSION_STRING)->configurable(false);
    app.get_help_ptr()->configurable(false);
    app.add_option("--config", config_file, "TOML file with any of the options")
        ->type_name("FILE")
        ->configurable(false)
        ->group("General");
    app.add_flag("--json", common.json, "Print results as JSON")->group("General");
    app.add_flag("--verbose", common.verbose, "Log what the connections do")->group("General");
    app.add_flag(
           "--parent-death",
           common.parent_death,
           "Behave as after SIGTERM when the parent process ends")
        ->group("General");
    add_common(app, common);
    app.get_help_ptr()->description("Show this help");
    app.get_option("--version")->description("Show the version");
    app.footer("Every option can also be an environment variable, such as REDLOCK_MAX_TTL, or a "
               "line of\n"
               "the --config file, such as max-ttl = \"30s\". The command line takes precedence "
               "over the\n"
               "environment, and the environment over the file. Durations: 500ms, 10s, 2m, 1h.\n"
               "redlock help COMMAND describes a command.");
}

CLI::App&
command_line::add(const std::string& name, const std::string& what, const std::string& examples) {
    CLI::App* const out = app.add_subcommand(name, what);
    out->fallthrough();
    out->group("Commands");
    out->footer("Examples:\n" + examples);
    out->get_help_ptr()->configurable(false);
    return *out;
}

void command_line::when(CLI::App& asked, std::function<int()> what) {
    actions.push_back({&asked, std::move(what)});
}

std::string_view tail_of(const CLI::App& app) {
    const std::string examples = app.get_footer();
    return examples.find(" -- -") != std::string::npos  ? "-- OPTIONS..."
           : examples.find(" -- ") != std::string::npos ? "-- COMMAND [ARGS...]"
                                                        : "";
}

namespace {

// The argument of redlock itself that the next word after the first -- is: in `status -- -x`, and
// in `run -- -x -- COMMAND`.
CLI::Option* next_argument(command_line& from) {
    const CLI::App& asked = asked_of(from);
    const std::vector<std::string>& words = from.command;
    if (words.empty() || (!tail_of(asked).empty() && (words.size() < 2 || words[1] != "--"))) {
        return nullptr;
    }
    const auto room = asked_of(from).get_options([](const CLI::Option* one) {
        return one->get_positional()
               && static_cast<int>(one->count()) < one->get_items_expected_max();
    });
    return room.empty() ? nullptr : room.front();
}

void take_arguments(command_line& into) {
    const bool runs = !tail_of(asked_of(into)).empty();
    while (CLI::Option* const argument = next_argument(into)) {
        argument->add_result(into.command.front());
        argument->run_callback();
        into.command.erase(into.command.begin(), into.command.begin() + (runs ? 2 : 1));
    }
}

void parse(command_line& into, const std::vector<std::string>& words) {
    const auto attempt = [&] {
        into.app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    };
    try {
        try {
            attempt();
        } catch (const CLI::RequiredError&) {
            CLI::Option* const missing = next_argument(into);
            if (missing == nullptr) {
                throw;
            }
            missing->required(false);
            attempt();
        }
        take_arguments(into);
    } catch (const CLI::Success& asked) {
        const std::vector<std::string> unknown = into.app.remaining();
        if (&asked_of(into) == &into.app && !unknown.empty() && !unknown[0].starts_with("-")) {
            refuse(into, asked); // --help after a command that does not exist
        }
        throw;
    } catch (const CLI::ParseError& error) {
        refuse(into, error);
    }
    if (const CLI::App& asked = asked_of(into); tail_of(asked).empty() && !into.command.empty()) {
        throw failure(
            exit_code::usage,
            fmt::format(
                "{} takes nothing after --{}",
                asked.get_name(),
                asked.get_name() == "acquire" ? how_to_run : ""));
    }
}

} // namespace

void read_command_line(command_line& into, int argc, char** argv) {
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    const auto mark = std::find(words.begin(), words.end(), "--");
    if (mark != words.end()) {
        into.has_command = true;
        into.command.assign(mark + 1, words.end());
        words.erase(mark, words.end());
    }
    take_help(words, into.app);
    refuse_wrong_values(into.app, words);
    parse(into, words);
    refuse_empty_names(into);
    if (into.config_file.empty()) {
        const char* const named = std::getenv("REDLOCK_CONFIG");
        into.config_file = named == nullptr ? "" : named;
    }
    resolve(into);
}

} // namespace cli
