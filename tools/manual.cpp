#include "manual.hpp"

#include "command_line.hpp"
#include "exit_code.hpp"
#include "resolution.hpp"
#include "words.hpp"

#include <redlock/version.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string_view>

namespace cli {
namespace {

// Text with an entry for each of the commands, " run attach "; empty: for all.
struct entry {
    std::string_view name;
    std::string_view commands;
    std::string_view text;
};

constexpr std::array statuses{
    entry{"0", "", "Done."},
    entry{
        "200",
        " acquire attach force-release pool run status ",
        "Another owner holds the lock, or the wait expired. See "
        "\\fB\\-\\-conflict\\-exit\\-code\\fR of the commands that have it."},
    entry{
        "201",
        " acquire attach extend force-release list pool release run status ",
        "No quorum: too few masters replied or could vote."},
    entry{"202", " attach elect extend pool release run ", "The lock was lost."},
    entry{"203", "", "The command line is wrong."},
    entry{"204", "", "A variable, the file of \\fB\\-\\-config\\fR or a value is wrong."},
    entry{"205", "", "Any other error."},
    entry{
        "206",
        " release status ",
        "The answers of the masters differ: the lock is neither held nor free, or no majority "
        "released it."},
    entry{"207", " doctor ", "Warnings."},
    entry{
        "208",
        " doctor ",
        "Broken: no majority to lock on, or an assumption of the guarantees does not hold."},
    entry{"209", " doctor ", "Degraded: a minority of the masters is broken, and locks work."},
    entry{"126", " attach bench elect local pool run ", "The program cannot be executed."},
    entry{"127", " attach bench elect local pool run ", "The program was not found."},
};

constexpr std::array variables{
    entry{"REDLOCK_CONFIG", "", "File with values of options, as \\fB\\-\\-config\\fR."},
    entry{"REDLOCK_MASTERS", "", "The masters, as \\fB\\-\\-masters\\fR."},
    entry{
        "REDLOCK_PASSWORD",
        "",
        "Password for masters whose URL has none. There is no option for it: everybody can read a "
        "command line."},
    entry{"REDLOCK_TOKEN", " attach extend release ", "The token that \\fBacquire\\fR printed."},
    entry{
        "REDLOCK_REDIS_SERVER",
        " bench local ",
        "The server to start in place of \\fBredis\\-server\\fR or \\fBvalkey\\-server\\fR."},
    entry{"REDLOCK_QUORUM_BENCH", " bench ", "Path of the program \\fBquorum_bench\\fR."},
};

// Those that the command of `run` gets.
constexpr std::array given{
    entry{"REDLOCK_RESOURCE", "", "Name of the resource."},
    entry{
        "REDLOCK_TOKEN",
        "",
        "Token of the lock, a secret: any client that has it can release the lock. Not with "
        "\\fB\\-\\-shared\\fR."},
    entry{
        "REDLOCK_DEADLINE",
        "",
        "End of the first lease, in milliseconds since 1970. A renewal moves the actual end on."},
    entry{
        "REDLOCK_FENCING_TOKEN",
        "",
        "With \\fB\\-\\-fencing\\fR, and of \\fBelect\\fR: the fencing token."},
    entry{
        "REDLOCK_SLOT",
        " pool run ",
        "With \\fB\\-\\-slots\\fR, and of \\fBpool\\fR: number of the slot, from 0."},
};

std::string troff(std::string text) {
    text = replaced(std::move(text), "\\", "\\e");
    text = replaced(std::move(text), "-", "\\-");
    text = replaced(std::move(text), "\n.", "\n\\&.");
    text = replaced(std::move(text), "\n'", "\n\\&'");
    return text;
}

// `command` is empty for the page of all.
template <std::size_t N>
std::string entries_for(const std::array<entry, N>& all, std::string_view command) {
    std::string out;
    for (const entry& one : all) {
        const bool fits =
            command.empty() || one.commands.empty()
            || one.commands.find(fmt::format(" {} ", command)) != std::string_view::npos;
        if (fits) {
            fmt::format_to(std::back_inserter(out), ".TP\n.B {}\n{}\n", one.name, one.text);
        }
    }
    return out;
}

std::string man_options(const CLI::App& app) {
    std::string out;
    for (const listed_option& one : options_listed(app)) {
        fmt::format_to(
            std::back_inserter(out),
            ".TP\n{}\\fB{}\\fR{}{}\n{}.{}\n",
            one.letter.empty() ? "" : "\\fB" + troff(one.letter) + "\\fR, ",
            troff(one.name),
            one.value.empty() ? "" : " ",
            troff(one.value),
            troff(one.what),
            one.usual.empty() ? "" : " Default: " + troff(one.usual) + ".");
    }
    return out;
}

std::string man_environment(const CLI::App& app, std::string_view command) {
    std::string names;
    for (const listed_option& one : options_listed(app)) {
        if (one.name != "--help" && one.name != "--version" && one.name != "--config") {
            names += (names.empty() ? "" : ", ") + variable_of(one.name.substr(2));
        }
    }
    std::string out = ".SH ENVIRONMENT\n" + entries_for(variables, command);
    if (!names.empty()) {
        out += fmt::format(
            ".PP\nAn option that is not given takes its value from one of these variables:\n{}.\n",
            names);
    }
    return out;
}

std::string man_head(const std::string& name, const std::string& what) {
    return fmt::format(
        ".TH {} 1 \"\" \"redlock {}\"\n.SH NAME\n{} \\- {}\n",
        troff(name),
        REDLOCK_VERSION_STRING,
        troff(name),
        troff(what));
}

std::string man_of(const CLI::App& app) {
    const std::string name = app.get_name();
    std::string out = man_head("redlock-" + name, app.get_description());
    std::string resource;
    for (const CLI::Option* one : app.get_options()) {
        if (one->get_positional()) {
            resource += " " + one->get_name();
        }
    }
    std::string footer = app.get_footer();
    const std::string_view begin = "Examples:\n";
    footer.erase(0, footer.starts_with(begin) ? begin.size() : 0);
    const std::size_t gap = std::min(footer.find("\n\n"), footer.size());
    fmt::format_to(
        std::back_inserter(out),
        ".SH SYNOPSIS\n.B redlock {}\n[\\fIoptions\\fR]{}{}\n.SH DESCRIPTION\n{}.\n",
        troff(name),
        troff(resource),
        tail_of(app).empty() ? "" : " " + troff(std::string(tail_of(app))),
        troff(app.get_description()));
    if (gap < footer.size()) {
        out += replaced(troff(footer.substr(gap + 2)), "\n\n", "\n.PP\n") + "\n";
    }
    out += ".SH OPTIONS\n" + man_options(app)
           + ".PP\nThe options of all commands are in\n.BR redlock (1).\n"
           + man_environment(app, name);
    if (runs_a_command(app)) {
        out += ".PP\nThe command gets:\n" + entries_for(given, name);
    }
    out += ".SH EXIT STATUS\n";
    if (runs_a_command(app)) {
        out += "That of the command if it ran, or 128 + N if signal N ended it. Otherwise:\n";
    }
    out += entries_for(statuses, name);
    return out + ".SH EXAMPLES\n.nf\n" + troff(footer.substr(0, gap))
           + "\n.fi\n.SH SEE ALSO\n.BR redlock (1)\n";
}

std::string man(const CLI::App& app) {
    std::string out = man_head("redlock", app.get_description());
    out += ".SH SYNOPSIS\n.B redlock\n\\fICOMMAND\\fR [\\fIoptions\\fR] ...\n.SH DESCRIPTION\n"
           "redlock runs commands under a lock, acquires and inspects locks from a shell, and\n"
           "examines a quorum. A lock is held on a majority of independent Redis masters, so a\n"
           "minority of them may fail. It is a lease: it ends with its ttl unless it is renewed.\n"
           ".SH COMMANDS\n";
    for (const CLI::App* one : apps_of(app)) {
        fmt::format_to(
            std::back_inserter(out),
            ".TP\n.BR redlock\\-{} (1)\n{}.\n",
            troff(one->get_name()),
            troff(one->get_description()));
    }
    out += ".SH OPTIONS OF ALL COMMANDS\n" + man_options(app);
    out += man_environment(app, "");
    out += ".PP\nVariables of the command that run, attach, pool or elect starts:\n"
           + entries_for(given, "");
    out += ".SH FILES\nThe file of \\fB\\-\\-config\\fR.\n" + troff(app.get_footer()) + "\n";
    out += ".SH EXIT STATUS\n"
           "That of the command if one ran, or 128 + N if signal N ended it. Otherwise:\n"
           + entries_for(statuses, "");
    return out;
}

} // namespace

void add_manual(command_line& to) {
    const auto page = std::make_shared<std::string>();
    CLI::App& writes = to.add(
        "man",
        "Print a manual page",
        "  redlock man | man -l -\n"
        "  redlock man run | man -l -");
    writes.add_option("COMMAND", *page, "Command to describe; default: redlock itself")
        ->type_name("");
    to.when(writes, [page, &to] {
        if (page->empty()) {
            fmt::print("{}", man(to.app));
            return 0;
        }
        const auto names = commands_of(to.app);
        if (std::find(names.begin(), names.end(), *page) == names.end()) {
            const std::string meant = did_you_mean(*page, names);
            throw failure(
                exit_code::usage,
                fmt::format(
                    "unknown command '{}'{}",
                    printable(*page),
                    meant.empty() ? "; redlock --help lists the commands" : meant));
        }
        fmt::print("{}", man_of(*to.app.get_subcommand(*page)));
        return 0;
    });
}

} // namespace cli
