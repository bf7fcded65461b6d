#include "refusals.hpp"

#include "command_line.hpp"
#include "exit_code.hpp"
#include "options.hpp"
#include "resolution.hpp"
#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cli {
namespace {

constexpr std::string_view where_the_commands_are = "; redlock --help lists the commands";

std::vector<std::string> flags_of(const CLI::App& app) {
    std::vector<std::string> out;
    for (const CLI::App* one : {&app, app.get_parent()}) {
        if (one != nullptr) {
            for (const CLI::Option* option : one->get_options()) {
                if (!option->get_lnames().empty() && option->get_group() != hidden) {
                    out.push_back("--" + long_name(*option));
                }
            }
        }
    }
    return out;
}

// Names that other tools use.
std::string known_as(std::string_view name, const CLI::App& asked) {
    struct synonym {
        std::string_view theirs;
        std::string_view option;
        std::string_view value;
    };
    constexpr std::array synonyms{
        synonym{"-n", "--wait", " none"},
        synonym{"--nb", "--wait", " none"},
        synonym{"--nonblock", "--wait", " none"},
        synonym{"--no-wait", "--wait", " none"},
        synonym{"-w", "--wait", ""},
        synonym{"--timeout", "--wait", ""},
        synonym{"--expire", "--ttl", ""},
        synonym{"--expiry", "--ttl", ""},
        synonym{"-V", "--version", ""},
        synonym{"-s", "--shared", ""},
        synonym{"-x", "--exclusive", ""},
    };
    const std::vector<std::string> flags = flags_of(asked);
    for (const synonym& one : synonyms) {
        if (one.theirs == name
            && std::find(flags.begin(), flags.end(), one.option) != flags.end()) {
            return fmt::format(", did you mean {}{}?", one.option, one.value);
        }
    }
    return did_you_mean(name, flags);
}

// The commands that have this option, if another one was given.
std::string elsewhere(const std::string& name, const CLI::App& app) {
    std::vector<std::string> out;
    for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
        const CLI::Option* const option = one->get_option_no_throw(name);
        if (option != nullptr && option->get_group() != hidden) {
            out.push_back(one->get_name());
        }
    }
    return out.empty() ? "" : fmt::format("; {} is an option of {}", name, fmt::join(out, ", "));
}

std::string known_as(std::string_view name, const std::vector<std::string>& commands) {
    constexpr std::array<std::array<std::string_view, 2>, 12> synonyms{{
        {"lock", "run or acquire"},
        {"unlock", "release"},
        {"exec", "run"},
        {"try", "run"},
        {"renew", "extend"},
        {"refresh", "extend"},
        {"break", "force-release"},
        {"steal", "force-release"},
        {"ls", "list"},
        {"check", "doctor"},
        {"version", "--version"},
    }};
    for (const auto& [theirs, ours] : synonyms) {
        if (theirs == name) {
            return fmt::format(", did you mean {}?", ours);
        }
    }
    return did_you_mean(name, commands);
}

} // namespace

std::string sentence_of(const CLI::Error& error) {
    const std::string text = error.what();
    const std::string name = text.substr(0, text.find(": "));
    const auto is = [&error](auto* type) {
        return dynamic_cast<decltype(type)>(&error) != nullptr;
    };
    if (is(static_cast<const CLI::RequiredError*>(nullptr))) {
        return text.substr(0, text.find(' ')) + " is missing";
    }
    if (is(static_cast<const CLI::ArgumentMismatch*>(nullptr))) {
        return name
               + (text.find("missing") != std::string::npos ? ": no value given"
                                                            : ": more than one value given");
    }
    if (is(static_cast<const CLI::ExcludesError*>(nullptr))) {
        const std::size_t end = text.find(' ');
        return fmt::format(
            "{} cannot be combined with {}", text.substr(0, end), text.substr(text.rfind(' ') + 1));
    }
    if (is(static_cast<const CLI::ConversionError*>(nullptr))) { // "Could not convert: --x = y"
        const std::size_t mark = text.find(" = ");
        const std::size_t from = name.size() + 2;
        return mark == std::string::npos ? text
                                         : fmt::format(
                                             "{}: invalid value '{}'; allowed: true, false",
                                             text.substr(from, mark - from),
                                             text.substr(mark + 3));
    }
    return text;
}

void refuse(command_line& from, const CLI::ParseError& error) {
    CLI::App& asked = asked_of(from);
    const std::string help =
        &asked == &from.app ? "redlock --help" : "redlock " + asked.get_name() + " --help";
    const bool no_mark = !from.has_command && tail_of(asked).starts_with("-- COMMAND");
    for (const std::string& word : from.app.remaining(true)) {
        if (word.starts_with("-")) {
            // A part that may be a value, as in -pPASSWORD, is not shown.
            const std::string name =
                word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
            if (const std::vector<std::string> flags = flags_of(asked);
                std::find(flags.begin(), flags.end(), name) != flags.end()) {
                throw failure(
                    exit_code::usage,
                    fmt::format(
                        "{0} is an option of {1}; write: redlock {1} {0} ...",
                        name,
                        asked.get_name()));
            }
            const std::string others = elsewhere(name, from.app);
            const std::string meant = others.empty() ? known_as(name, asked) : others;
            throw failure(
                exit_code::usage,
                fmt::format(
                    "unknown option {}{}{}",
                    printable(name),
                    meant,
                    no_mark         ? "; put -- before the command and its options"
                    : meant.empty() ? "; see " + help
                                    : ""));
        }
        if (&asked == &from.app) {
            const std::string meant = known_as(word, commands_of(from.app));
            throw failure(
                exit_code::usage,
                fmt::format(
                    "unknown command '{}'{}",
                    misplaced(word),
                    !meant.empty()     ? meant
                    : from.has_command ? std::string(how_to_run)
                                       : std::string(where_the_commands_are)));
        }
        if (no_mark) {
            throw failure(
                exit_code::usage,
                fmt::format(
                    "unexpected argument '{}'; put -- before the command: redlock {} RESOURCE -- "
                    "COMMAND",
                    misplaced(word),
                    asked.get_name()));
        }
        throw failure(
            exit_code::usage,
            fmt::format("unexpected argument '{}'; see {}", misplaced(word), help));
    }
    if (&asked == &from.app && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        throw failure(
            exit_code::usage,
            fmt::format(
                "no command given; {}",
                (from.has_command ? how_to_run : where_the_commands_are).substr(2)));
    }
    throw failure(exit_code::usage, fmt::format("{}; see {}", printable(sentence_of(error)), help));
}

// CLI11 takes a number or any other text after a flag: "--parent-death=5".
void refuse_wrong_values(const CLI::App& app, const std::vector<std::string>& words) {
    auto apps = app.get_subcommands([](const CLI::App*) { return true; });
    for (const std::string& word : words) {
        const std::size_t mark = word.find('=');
        if (!word.starts_with("--") || mark == std::string::npos) {
            continue;
        }
        const std::string name = word.substr(0, mark);
        std::vector<const CLI::Option*> found{app.get_option_no_throw(name)};
        for (const CLI::App* one : apps) {
            found.push_back(one->get_option_no_throw(name));
        }
        std::erase(found, nullptr);
        if (found.empty()) {
            continue;
        }
        const std::string value = word.substr(mark + 1);
        if (std::ranges::any_of(
                found, [](const CLI::Option* one) { return one->get_items_expected_max() > 0; })) {
            if (value.empty()) { // CLI11 would take the next word
                throw failure(
                    exit_code::usage,
                    fmt::format("{0}=: no value given; an empty one is written {0} ''", name));
            }
            continue;
        }
        // Of the flags, CLI11 makes only --help and --version not configurable.
        const bool fixed = !found.front()->get_configurable();
        if (fixed || (value != "true" && value != "false")) {
            throw failure(
                exit_code::usage,
                fixed ? fmt::format("{} takes no value", name)
                      : fmt::format(
                          "{}: invalid value '{}'; allowed: true, false", name, printable(value)));
        }
    }
}

void refuse_empty_names(const command_line& from) {
    for (const CLI::Option* option : from.app.get_options()) {
        if (option->count() > 0 && option->get_type_name() == "FILE"
            && option->results().back().empty()) {
            throw failure(
                exit_code::usage,
                fmt::format("--{}: no value given; name a file", long_name(*option)));
        }
    }
}

} // namespace cli
