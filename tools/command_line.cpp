#include "command_line.hpp"

#include "exit_code.hpp"
#include "toml.hpp"

#include <redlock/version.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>

extern char** environ;

namespace cli {
namespace {

const std::string hidden; // the group of options that no help shows

class formatter : public CLI::Formatter {
public:
    std::string make_usage(const CLI::App* app, std::string name) const override {
        std::string out = CLI::Formatter::make_usage(app, std::move(name));
        if (app->get_footer().find(" -- ") == std::string::npos) {
            return out;
        }
        out.erase(out.find_last_not_of('\n') + 1);
        return out + " -- COMMAND [ARGS...]\n";
    }
};

std::string long_name(const CLI::Option& option) {
    return option.get_lnames().empty() ? "" : option.get_lnames().front();
}

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

void add_masters(CLI::App& app, settings& into) {
    app.add_option(
           "--masters",
           into.masters,
           "The masters: redis://, rediss:// or unix:// URLs, between commas or one an option")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("URL,...")
        ->group("The quorum");
    app.add_option("--prefix", into.prefix, "What comes before a resource's name in each key")
        ->capture_default_str()
        ->group("The quorum");
    app.add_option(
           "--protocol", into.protocol, "guarded, or plain to share locks with other clients")
        ->check(CLI::IsMember(std::vector<std::string>{"guarded", "plain"}))
        ->type_name("NAME")
        ->capture_default_str()
        ->group("The quorum");
    app.add_flag(
           "--no-quarantine",
           into.no_quarantine,
           "Let restarted masters vote at once. Only for masters that are known to be new")
        ->group("The quorum");
}

void add_times(CLI::App& app, settings& into) {
    const auto add = [&](const std::string& name, milliseconds& value, const std::string& what) {
        add_duration(app, name, value, what)->group("Times");
    };
    add("--max-ttl", into.max_ttl, "The longest lease of the deployment; the same everywhere");
    add("--master-timeout", into.master_timeout, "A master that is silent for so long is out");
    add("--connect-timeout", into.connect_timeout, "From a name's look-up to the handshake's end");
    add("--clock-drift-margin", into.clock_drift_margin, "What clocks may step");
    add("--clock-offset-bound", into.clock_offset_bound, "How far the masters' clocks are apart");
    app.add_option("--clock-drift-factor", into.clock_drift_factor, "How much clocks may drift")
        ->check(CLI::Range(0.0, 0.5))
        ->type_name("SHARE")
        ->capture_default_str()
        ->group("Times");
}

void add_credentials(CLI::App& app, settings& into) {
    const auto add = [&](const std::string& name, std::string& value, const std::string& what) {
        return app.add_option(name, value, what)->group("Credentials and TLS");
    };
    add("--username", into.username, "The user, for masters whose URL names none");
    add("--password-file", into.password_file, "A file whose first line is the password")
        ->type_name("FILE");
    // On a command line everybody could read it; `resolve` refuses it there.
    app.add_option("--password", into.password)->group(hidden);
    add("--tls-ca-file", into.tls.ca_file, "Authorities to trust in place of the system's")
        ->type_name("FILE");
    add("--tls-certificate-file", into.tls.certificate_file, "The client's certificate")
        ->type_name("FILE");
    add("--tls-private-key-file", into.tls.private_key_file, "Its key")->type_name("FILE");
    add("--tls-server-name", into.tls.server_name, "The name to verify, if it is not the host's")
        ->type_name("NAME");
    app.add_flag("--tls-insecure", into.tls_insecure, "Do not verify the masters' certificates")
        ->group("Credentials and TLS");
}

// Values for the options that the command line did not have.
class resolution {
public:
    resolution(command_line& into) : into_(into), asked_(asked_of(into)) {}

    void run() {
        refuse_password();
        for (CLI::App* app : {&into_.app, &asked_}) {
            from_environment(*app);
        }
        warn_of_variables();
        if (!into_.config_file.empty()) {
            from_file();
        }
    }

private:
    void refuse_password() const {
        if (into_.app.get_option("--password")->count() > 0) {
            throw failure(
                exit_code::usage,
                "a password on the command line can be read by everybody on this machine: use "
                "REDLOCK_PASSWORD, --password-file or the file of --config");
        }
    }

    static void
    give(CLI::Option& option, const std::vector<std::string>& values, const std::string& where) {
        try {
            for (const std::string& one : values) {
                option.add_result(
                    option.get_type_size_max() == 0 ? option.get_flag_value(long_name(option), one)
                                                    : one);
            }
            option.run_callback();
        } catch (const CLI::Error& error) {
            throw failure(exit_code::configuration, fmt::format("{}: {}", where, error.what()));
        }
    }

    static void from_environment(CLI::App& app) {
        for (CLI::Option* option : app.get_options()) {
            const std::string name = variable_of(long_name(*option));
            const char* const value = name.empty() ? nullptr : std::getenv(name.c_str());
            if (value != nullptr && *value != '\0' && option->count() == 0
                && option->get_configurable()) {
                give(*option, {value}, name);
            }
        }
    }

    // A variable that nobody reads is a slip, if it is nearly one that is read.
    void warn_of_variables() const {
        constexpr std::string_view start = "REDLOCK_";
        std::vector<std::string> known{
            "RESOURCE", "TOKEN", "FENCING_TOKEN", "DEADLINE", "SLOT", "REDIS_SERVER"};
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
        std::ifstream file(into_.config_file);
        if (!file) {
            throw failure(
                exit_code::configuration, fmt::format("{} cannot be read", into_.config_file));
        }
        std::vector<toml_entry> entries;
        try {
            entries = read_toml(file);
        } catch (const std::invalid_argument& error) {
            throw failure(
                exit_code::configuration, fmt::format("{}: {}", into_.config_file, error.what()));
        }
        // What is said of a command goes before what is said of all.
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
            throw failure(
                exit_code::configuration,
                fmt::format(
                    "{}: [{}] is no command{}",
                    where,
                    printable(entry.section),
                    did_you_mean(entry.section, known)));
        }
        check_name(entry, where);
        if (!entry.section.empty() && entry.section != asked_.get_name()) {
            return;
        }
        for (CLI::App* app : {&asked_, &into_.app}) {
            CLI::Option* const option = app->get_option_no_throw("--" + entry.key);
            if (option != nullptr && option->count() == 0) {
                give(*option, entry.values, where);
                return;
            }
        }
    }

    // An option of any command may stand there, or one file could not serve all of them.
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
            throw failure(
                exit_code::configuration,
                fmt::format("{} is no option{}", where, did_you_mean(entry.key, names)));
        }
    }

    command_line& into_;
    CLI::App& asked_;
};

[[noreturn]] void refuse(command_line& from, const CLI::ParseError& error) {
    CLI::App& asked = asked_of(from);
    for (const std::string& word : from.app.remaining(true)) {
        if (word.starts_with("-")) {
            const std::string name = word.substr(0, word.find('='));
            throw failure(
                exit_code::usage,
                fmt::format(
                    "{} is no option{}", printable(name), did_you_mean(name, flags_of(asked))));
        }
        if (&asked == &from.app) {
            throw failure(
                exit_code::usage,
                fmt::format(
                    "{} is no command{}",
                    printable(word),
                    did_you_mean(word, commands_of(from.app))));
        }
        throw failure(
            exit_code::usage,
            fmt::format(
                "'{}' is one word too many; see redlock {} --help",
                printable(word),
                asked.get_name()));
    }
    throw failure(exit_code::usage, printable(error.what()));
}

} // namespace

command_line::command_line()
    : app("A lock on a majority of independent Redis masters, for the command line.", "redlock") {
    app.formatter(std::make_shared<formatter>());
    app.get_formatter()->column_width(30);
    app.fallthrough();
    app.require_subcommand(1);
    app.set_version_flag("--version", REDLOCK_VERSION_STRING)->configurable(false);
    app.get_help_ptr()->configurable(false);
    app.add_option("--config", config_file, "A file in TOML with any of the options")
        ->type_name("FILE")
        ->configurable(false)
        ->group("General");
    app.add_flag("--json", common.json, "Tell what was found as JSON")->group("General");
    app.add_flag("--verbose", common.verbose, "Tell what the connections do")->group("General");
    add_masters(app, common);
    add_times(app, common);
    add_credentials(app, common);
    app.footer("Every option can be a variable of the environment, --max-ttl as REDLOCK_MAX_TTL, "
               "or a line\n"
               "of the file of --config, max-ttl = \"30s\". The command line goes before the "
               "environment,\n"
               "that before the file. Durations are 500ms, 10s, 2m, 1h. redlock COMMAND --help "
               "tells more.");
}

CLI::App&
command_line::add(const std::string& name, const std::string& what, const std::string& examples) {
    CLI::App* const out = app.add_subcommand(name, what);
    out->fallthrough();
    out->footer("Examples:\n" + examples);
    out->get_help_ptr()->configurable(false);
    return *out;
}

void command_line::when(CLI::App& asked, std::function<int()> what) {
    actions.push_back({&asked, std::move(what)});
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

void add_resource(CLI::App& app, std::string& into) {
    app.add_option("RESOURCE", into, "What is locked: any name")->required()->type_name("");
}

void add_wishes(CLI::App& app, lock_wishes& into, const std::string& usual_wait) {
    add_resource(app, into.resource);
    add_duration(app, "--ttl", into.ttl, "The lease: how long a crash blocks others");
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
           "How long to wait for it")
        ->type_name("none|DURATION|forever")
        ->default_str(usual_wait);
    app.add_flag("--fencing", into.fencing, "With a fencing token; all owners need it, or none");
    app.add_flag("--fifo", into.fifo, "Wait in the order of arrival");
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

void read_command_line(command_line& into, int argc, char** argv) {
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    const auto mark = std::find(words.begin(), words.end(), "--");
    if (mark != words.end()) {
        into.has_command = true;
        into.command.assign(mark + 1, words.end());
        words.erase(mark, words.end());
    }
    std::reverse(words.begin(), words.end());
    try {
        into.app.parse(std::move(words));
    } catch (const CLI::Success&) {
        throw;
    } catch (const CLI::ParseError& error) {
        refuse(into, error);
    }
    if (into.config_file.empty()) {
        const char* const named = std::getenv("REDLOCK_CONFIG");
        into.config_file = named == nullptr ? "" : named;
    }
    resolution(into).run();
}

} // namespace cli
