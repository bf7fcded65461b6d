#include "resolution.hpp"

#include "command_line.hpp"
#include "exit_code.hpp"
#include "redaction.hpp"
#include "refusals.hpp"
#include "toml.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string_view>

namespace cli {

std::string long_name(const CLI::Option& option) {
    return option.get_lnames().empty() ? "" : option.get_lnames().front();
}

std::vector<std::string> commands_of(const CLI::App& app) {
    std::vector<std::string> out;
    for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
        out.push_back(one->get_name());
    }
    return out;
}

CLI::App& asked_of(command_line& from) {
    const auto asked = from.app.get_subcommands();
    return asked.empty() ? from.app : *asked.front();
}

std::string variable_of(const std::string& option) {
    if (option.empty()) {
        return {};
    }
    std::string out = "REDLOCK_";
    std::transform(option.begin(), option.end(), std::back_inserter(out), [](char c) {
        return c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    });
    return out;
}

namespace {

// Values for options that are missing on the command line.
class resolution {
public:
    resolution(command_line& into) : into_(into), asked_(asked_of(into)) {}

    void run() {
        refuse_password();
        stronger_ = asked_.get_options(is_set);
        for (CLI::App* app : {&into_.app, &asked_}) {
            from_environment(*app);
        }
        warn_of_variables();
        stronger_ = asked_.get_options(is_set);
        if (!into_.config_file.empty()) {
            from_file();
        }
        for (const CLI::App* app : {&into_.app, &asked_}) {
            refuse_combinations(*app);
        }
    }

private:
    static bool is_set(const CLI::Option* one) {
        return one->count() > 0
               && (one->get_items_expected_max() > 0
                   || CLI::detail::to_flag_value(one->results().back()) > 0);
    }

    // --exclusive overrules a `shared` of the file, as --shared=false does.
    bool is_overruled(const CLI::Option& option) const {
        const std::string name = long_name(option);
        const auto opposes = [&](const CLI::Option* one) {
            const std::string other = long_name(*one);
            return (name == "shared" && other == "exclusive")
                   || (name == "exclusive" && other == "shared");
        };
        return std::ranges::any_of(stronger_, opposes);
    }

    void refuse_password() const {
        if (into_.app.get_option("--password")->count() > 0) {
            throw failure(
                exit_code::usage,
                "a password on the command line is visible to all users of this machine: use "
                "REDLOCK_PASSWORD, --password-file or the file of --config");
        }
    }

    void
    give(CLI::Option& option, const std::vector<std::string>& values, const std::string& where) {
        from_[&option] = where;
        if (values.empty()) {
            throw failure(
                exit_code::configuration,
                fmt::format(
                    "{}: the list is empty; write {}, or remove the line",
                    where,
                    option.get_items_expected_max() > 1 ? "one or more values" : "a value"));
        }
        if (values.back().ends_with('\n')) { // of a file that was read whole, as for a password
            throw failure(
                exit_code::configuration, where + ": the value ends with a line break; remove it");
        }
        try {
            for (const std::string& one : values) {
                const bool flag = option.get_items_expected_max() == 0;
                if (flag && one != "true" && one != "false" && one != "1" && one != "0") {
                    throw CLI::ValidationError(
                        "", fmt::format("invalid value '{}'; allowed: true, false", one));
                }
                option.add_result(one);
            }
            option.run_callback();
        } catch (const CLI::Error& error) {
            // The text begins with the name of the option, which `where` already contains.
            const std::string text = sentence_of(error);
            const std::size_t name = text.find(": ");
            throw failure(
                exit_code::configuration,
                fmt::format(
                    "{}: {}",
                    where,
                    printable(name == std::string::npos ? text : text.substr(name + 2))));
        }
    }

    void from_environment(CLI::App& app) {
        for (CLI::Option* option : app.get_options()) {
            const std::string name = variable_of(long_name(*option));
            const char* const value = name.empty() ? nullptr : std::getenv(name.c_str());
            if (value != nullptr && *value != '\0' && option->count() == 0
                && option->get_configurable() && !is_overruled(*option)) {
                give(*option, {value}, name);
            }
        }
    }

    // CLI11 compares only the options of the command line.
    void refuse_combinations(const CLI::App& app) const {
        const auto source = [this](const CLI::Option* one) {
            const auto found = from_.find(one);
            return found == from_.end() ? "--" + long_name(*one) : found->second;
        };
        for (const CLI::Option* one : app.get_options(is_set)) {
            for (const CLI::Option* other : one->get_excludes()) {
                if (is_set(other)) {
                    throw failure(
                        exit_code::configuration,
                        fmt::format(
                            "{} cannot be combined with {}; see redlock {} --help",
                            source(one),
                            source(other),
                            app.get_name()));
                }
            }
        }
    }

    // An unknown variable is reported only if it resembles a known one.
    void warn_of_variables() const {
        constexpr std::string_view start = "REDLOCK_";
        std::vector<std::string> known{
            "RESOURCE",
            "TOKEN",
            "FENCING_TOKEN",
            "DEADLINE",
            "SLOT",
            "REDIS_SERVER",
            "QUORUM_BENCH"};
        auto apps = into_.app.get_subcommands([](const CLI::App*) { return true; });
        apps.push_back(&into_.app);
        for (const CLI::App* app : apps) {
            for (const CLI::Option* option : app->get_options()) {
                if (const std::string name = variable_of(long_name(*option)); !name.empty()) {
                    known.push_back(name.substr(start.size()));
                }
            }
        }
        for (char** one = environ; *one != nullptr; ++one) {
            const std::string_view entry = *one;
            if (!entry.starts_with(start)) {
                continue;
            }
            const std::string name(entry.substr(start.size(), entry.find('=') - start.size()));
            const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
            if (const auto meant = nearest(name, known); meant && !is_known) {
                say(fmt::format(
                    "the variable {0}{1} is not known, did you mean {0}{2}?",
                    start,
                    printable(name),
                    *meant));
            }
        }
    }

    void from_file() {
        constexpr std::size_t longest = 1024 * 1024;
        std::vector<toml_entry> entries;
        try {
            entries = read_toml(text_of_file(into_.config_file, longest));
        } catch (const std::invalid_argument& error) {
            throw failure(
                exit_code::configuration, fmt::format("{}: {}", into_.config_file, error.what()));
        }
        // A command's section takes precedence over the general part.
        for (const bool special : {true, false}) {
            for (const toml_entry& entry : entries) {
                if (entry.section.empty() != special) {
                    apply(entry);
                }
            }
        }
    }

    void apply(const toml_entry& entry) {
        const std::string where =
            fmt::format("{}: line {}: {}", into_.config_file, entry.line, printable(entry.key));
        const auto known = commands_of(into_.app);
        if (!entry.section.empty()
            && std::find(known.begin(), known.end(), entry.section) == known.end()) {
            const std::string meant = did_you_mean(entry.section, known);
            throw failure(
                exit_code::configuration,
                fmt::format(
                    "{}: unknown command [{}]{}",
                    where,
                    printable(entry.section),
                    meant.empty() ? "; redlock --help lists the commands" : meant));
        }
        check_name(entry, where);
        if (!entry.section.empty() && entry.section != asked_.get_name()) {
            return;
        }
        for (CLI::App* app : {&asked_, &into_.app}) {
            CLI::Option* const option = app->get_option_no_throw("--" + entry.key);
            if (option != nullptr && option->count() == 0 && !is_overruled(*option)) {
                for (const std::string& one : entry.values) {
                    hide(one);
                }
                give(*option, entry.values, where);
                return;
            }
        }
    }

    // Options of any command may be in the file, so that one file serves all commands.
    void check_name(const toml_entry& entry, const std::string& where) const {
        std::vector<std::string> names;
        auto apps = into_.app.get_subcommands([](const CLI::App*) { return true; });
        apps.push_back(&into_.app);
        for (const CLI::App* app : apps) {
            const bool fits =
                entry.section.empty() || app == &into_.app || app->get_name() == entry.section;
            for (const CLI::Option* option : app->get_options()) {
                if (fits && option->get_configurable() && !option->get_lnames().empty()) {
                    names.push_back(long_name(*option));
                }
            }
        }
        if (std::find(names.begin(), names.end(), entry.key) == names.end()) {
            const std::string meant = did_you_mean(entry.key, names);
            throw failure(
                exit_code::configuration,
                fmt::format(
                    "{}: unknown option{}",
                    where,
                    meant.empty() ? fmt::format(
                        "; see redlock --help and redlock {} --help",
                        entry.section.empty() ? "COMMAND" : entry.section)
                                  : meant));
        }
    }

    command_line& into_;
    CLI::App& asked_;
    std::map<const CLI::Option*, std::string> from_; // the variable, or the line of the file
    std::vector<CLI::Option*> stronger_;             // set by what takes precedence
};

} // namespace

void resolve(command_line& into) {
    resolution(into).run();
}

} // namespace cli
