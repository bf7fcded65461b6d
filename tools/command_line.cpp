#include "command_line.hpp"

#include "exit_code.hpp"
#include "help.hpp"
#include "resolution.hpp"

#include <redlock/version.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace cli {
namespace {

constexpr std::string_view how_to_run =
    "; to run a command under a lock: redlock run RESOURCE -- COMMAND";

constexpr std::string_view where_the_commands_are = "; redlock --help lists the commands";

const std::string hidden; // the group of options that no help shows

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

// CLI11 leaves out empty parts. A variable without a value, as in $A,$B,$C, must not make a smaller
// quorum. The text is not shown, because it may contain passwords.
std::vector<std::string> addresses_of(const std::vector<std::string>& lists) {
    std::vector<std::string> out;
    for (std::string_view list : lists) {
        std::size_t comma = 0;
        while ((comma = list.find(',')) != std::string_view::npos) {
            out.emplace_back(list.substr(0, comma));
            list.remove_prefix(comma + 1);
        }
        out.emplace_back(list);
    }
    if (const auto empty = std::find(out.begin(), out.end(), ""); empty != out.end()) {
        throw CLI::ValidationError(
            "--masters",
            fmt::format(
                "address {} of {} is empty; write redis://host:6379, separated by commas",
                empty - out.begin() + 1,
                out.size()));
    }
    return out;
}

void add_masters(CLI::App& app, settings& into) {
    app.add_option_function<std::vector<std::string>>(
           "--masters",
           [&into](const std::vector<std::string>& lists) { into.masters = addresses_of(lists); },
           "URLs of the masters (redis://, rediss:// or unix://), separated by commas or repeated")
        ->allow_extra_args(false)
        ->type_name("URL,...")
        ->group("The quorum");
    app.add_option("--prefix", into.prefix, "Prefix of every key, before the resource")
        ->capture_default_str()
        ->group("The quorum");
    app.add_option("--protocol", into.protocol, "Protocol; plain shares locks with other libraries")
        ->check(one_of({"guarded", "plain"}))
        ->type_name("guarded|plain")
        ->capture_default_str()
        ->group("The quorum");
    app.add_flag(
           "--no-quarantine",
           into.no_quarantine,
           "Let masters vote without a quarantine; unsafe unless they are new")
        ->group("The quorum");
}

void add_times(CLI::App& app, settings& into) {
    const auto add = [&](const std::string& name, milliseconds& value, const std::string& what) {
        add_duration(app, name, value, what)->group("Times");
    };
    add("--max-ttl", into.max_ttl, "Longest ttl of this process; default: that of the quorum");
    add("--master-timeout",
        into.master_timeout,
        "Time without a reply after which a master is ignored");
    add("--connect-timeout", into.connect_timeout, "Time to resolve, connect and shake hands");
    add("--clock-drift-margin", into.clock_drift_margin, "Largest clock step to allow for");
    add("--clock-offset-bound", into.clock_offset_bound, "Maximum clock offset between masters");
    app.add_option(
           "--clock-drift-factor", into.clock_drift_factor, "Maximum difference in clock rates")
        ->check(number_between(0, 0.5))
        ->type_name("SHARE")
        ->capture_default_str()
        ->group("Times");
}

void add_credentials(CLI::App& app, settings& into) {
    const auto add = [&](const std::string& name, std::string& value, const std::string& what) {
        return app.add_option(name, value, what)->group("Credentials and TLS");
    };
    add("--username", into.username, "User name for masters whose URL has none");
    add("--password-file", into.password_file, "File with the password in its first line")
        ->type_name("FILE");
    // On a command line it would be visible to all users; `resolve` refuses it there.
    app.add_option("--password", into.password)->group(hidden);
    add("--tls-ca-file", into.tls.ca_file, "Trusted certificate authorities; default: the system's")
        ->type_name("FILE");
    add("--tls-certificate-file", into.tls.certificate_file, "Client certificate")
        ->type_name("FILE");
    add("--tls-private-key-file",
        into.tls.private_key_file,
        "Private key of the client certificate")
        ->type_name("FILE");
    add("--tls-server-name", into.tls.server_name, "Name to verify; default: the host of the URL")
        ->type_name("NAME");
    app.add_flag("--tls-insecure", into.tls_insecure, "Do not verify certificates; unsafe")
        ->group("Credentials and TLS");
}

[[noreturn]] void refuse(command_line& from, const CLI::ParseError& error) {
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

} // namespace

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
    add_masters(app, common);
    add_times(app, common);
    add_credentials(app, common);
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

CLI::Validator one_of(std::vector<std::string> words) {
    return CLI::Validator(
        [words = std::move(words)](const std::string& text) {
            if (std::find(words.begin(), words.end(), text) != words.end()) {
                return std::string();
            }
            return fmt::format(
                "invalid value '{}'; allowed: {}{}",
                printable(text),
                fmt::join(words, ", "),
                did_you_mean(text, words));
        },
        "");
}

CLI::Validator whole_number(std::size_t low, std::size_t high) {
    return CLI::Validator(
        [low, high](const std::string& text) {
            std::size_t value = 0;
            const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
            const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
            return whole && value >= low && value <= high
                       ? std::string()
                       : fmt::format(
                           "'{}' is not a number from {} to {}", printable(text), low, high);
        },
        "");
}

CLI::Validator number_between(double low, double high) {
    return CLI::Validator(
        [low, high](const std::string& text) {
            double value = 0;
            return CLI::detail::lexical_cast(text, value) && value >= low && value <= high
                       ? std::string()
                       : fmt::format(
                           "'{}' is not a number from {} to {}", printable(text), low, high);
        },
        "");
}

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

CLI::Option*
add_duration(CLI::App& app, const std::string& name, milliseconds& into, const std::string& what) {
    CLI::Option* const out = app.add_option_function<std::string>(
        name,
        [&into, name](const std::string& text) {
            try {
                into = parse_duration(text);
            } catch (const std::invalid_argument& error) {
                throw CLI::ValidationError(name, error.what());
            }
        },
        what);
    return out->type_name("DURATION")->default_str(duration_text(into));
}

void add_ttl(CLI::App& app, milliseconds& into, const std::string& what) {
    add_duration(app, "--ttl", into, what)->default_str("10s, at most --max-ttl");
}

void add_resource(CLI::App& app, std::string& into) {
    app.add_option("RESOURCE", into, "Name of the resource")->required()->type_name("");
}

void add_wishes(CLI::App& app, lock_wishes& into, const std::string& usual_wait) {
    add_resource(app, into.resource);
    add_ttl(app, into.ttl, "Duration of the lease; a crash blocks others for this long");
    app.add_option_function<std::string>(
           "--wait",
           [&into](const std::string& text) {
               try {
                   parse_wait(text);
                   into.wait = text;
               } catch (const std::invalid_argument& error) {
                   throw CLI::ValidationError("--wait", error.what());
               }
           },
           "Longest wait for the lock; none: one attempt, after at most --connect-timeout")
        ->type_name("none|DURATION|forever")
        ->default_str(usual_wait);
    app.add_option(
           "-E,--conflict-exit-code",
           into.conflict_exit_code,
           "Exit status to use in place of 200 if the lock is held")
        ->check(whole_number(0, 255))
        ->type_name("STATUS")
        ->capture_default_str();
    app.add_flag(
        "--fencing", into.fencing, "Request a fencing token; all owners must do so, or none");
    app.add_flag("--fifo", into.fifo, "Serve waiters in the order of arrival");
}

namespace {

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

// A variable of the shell without a value, as in --config "$FILE", must not mean the defaults.
void refuse_empty_names(command_line& from) {
    for (const CLI::Option* option : from.app.get_options()) {
        if (option->count() > 0 && option->get_type_name() == "FILE"
            && option->results().back().empty()) {
            throw failure(
                exit_code::usage,
                fmt::format("--{}: no value given; name a file", long_name(*option)));
        }
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
    } catch (const CLI::Success&) {
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
