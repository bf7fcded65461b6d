#include "completion.hpp"

#include "command_line.hpp"
#include "exit_code.hpp"
#include "resolution.hpp"

#include <redlock/version.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>

namespace cli {
namespace {

struct word {
    std::string name; // --ttl
    std::string what;
    std::string value; // DURATION; empty for a flag
    std::string usual;
    bool file = false;
};

std::vector<word> words_of(const CLI::App& app) {
    std::vector<word> out;
    for (const CLI::Option* one : app.get_options()) {
        if (one->get_lnames().empty() || one->get_group().empty()) {
            continue;
        }
        const bool flag = one->get_type_size_max() == 0;
        std::string value = flag ? "" : one->get_type_name();
        value = value.substr(0, value.find(':'));
        out.push_back(
            {"--" + long_name(*one),
             one->get_description(),
             value,
             flag ? "" : one->get_default_str(),
             value == "FILE"});
    }
    return out;
}

std::vector<const CLI::App*> apps_of(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App*) { return true; });
}

bool runs_a_command(const CLI::App& app) {
    return tail_of(app).starts_with("-- COMMAND");
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
        text.replace(at, what.size(), with);
    }
    return text;
}

std::string joined(const std::vector<word>& words, bool with_value) {
    std::string out;
    for (const word& one : words) {
        if (!with_value || !one.value.empty()) {
            out += (out.empty() ? "" : with_value ? "|" : " ") + one.name;
        }
    }
    return out;
}

std::string bash(const CLI::App& app) {
    std::string names;
    std::string cases;
    std::string valued = joined(words_of(app), true);
    std::string files;
    for (const word& one : words_of(app)) {
        if (one.file) {
            files += (files.empty() ? "" : "|") + one.name;
        }
    }
    for (const CLI::App* one : apps_of(app)) {
        names += (names.empty() ? "" : " ") + one->get_name();
        cases += fmt::format(
            "        {}) options=\"{}\" ;;\n", one->get_name(), joined(words_of(*one), false));
        const std::string more = joined(words_of(*one), true);
        valued += more.empty() ? "" : "|" + more;
    }
    return fmt::format(
        R"(# bash completion of redlock. Made by: redlock completion bash
_redlock() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    local command='' options='' i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${{COMP_WORDS[i]}} in
        --)
            COMPREPLY=($(compgen -c -- "$current"))
            ((i + 1 == COMP_CWORD)) || COMPREPLY=($(compgen -f -- "$current"))
            return
            ;;
        {valued}) ((i++)) || : ;;
        -*) ;;
        *) [ -n "$command" ] || command=${{COMP_WORDS[i]}} ;;
        esac
    done
    case $previous in
    {files}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    {valued}) return ;;
    esac
    if [ -z "$command" ] && [[ $current != -* ]]; then
        COMPREPLY=($(compgen -W "{names}" -- "$current"))
        return
    fi
    case $command in
{cases}    esac
    COMPREPLY=($(compgen -W "$options {common}" -- "$current"))
}}
complete -F _redlock redlock
)",
        fmt::arg("valued", valued),
        fmt::arg("files", files),
        fmt::arg("names", names),
        fmt::arg("cases", cases),
        fmt::arg("common", joined(words_of(app), false)));
}

// A description inside '...[...]...'.
std::string zsh_text(std::string text) {
    for (const std::string_view c : {"[", "]", ":"}) {
        text = replaced(std::move(text), c, "\\" + std::string(c));
    }
    return replaced(std::move(text), "'", "'\\''");
}

std::string zsh_words(const CLI::App& app, std::string_view indent) {
    std::string out;
    for (const word& one : words_of(app)) {
        const std::string value =
            one.value.empty() ? "" : ":" + zsh_text(one.value) + ":" + (one.file ? "_files" : " ");
        fmt::format_to(
            std::back_inserter(out),
            "{}'{}{}[{}]{}' \\\n",
            indent,
            one.name == "--masters" ? "*" : "",
            one.name,
            zsh_text(one.what),
            value);
    }
    return out;
}

std::string zsh(const CLI::App& app) {
    std::string commands;
    std::string cases;
    for (const CLI::App* one : apps_of(app)) {
        commands +=
            fmt::format("        '{}:{}'\n", one->get_name(), zsh_text(one->get_description()));
        cases += fmt::format(
            "    {})\n        _arguments -s $common \\\n{}            {}\n        ;;\n",
            one->get_name(),
            zsh_words(*one, "            "),
            runs_a_command(*one) ? "'1:resource: ' '*:: :_normal'" : "'*:resource: '");
    }
    return fmt::format(
        R"(#compdef redlock
# zsh completion of redlock. Made by: redlock completion zsh
_redlock() {{
    local context state line curcontext=$curcontext
    local -a commands common
    commands=(
{}    )
    common=( \
{}    )
    _arguments -C $common '1: :->command' '*:: :->rest' && return
    case $state in
    command) _describe command commands; return ;;
    esac
    case $line[1] in
{}    esac
}}
_redlock "$@"
)",
        commands,
        replaced(zsh_words(app, "        "), " \\\n", "\n"),
        cases);
}

std::string fish_text(const std::string& text) {
    return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_words(const CLI::App& app, const std::string& condition) {
    std::string out;
    for (const word& one : words_of(app)) {
        fmt::format_to(
            std::back_inserter(out),
            "complete -c redlock{} -l {}{} -d {}\n",
            condition,
            one.name.substr(2),
            one.value.empty() ? ""
            : one.file        ? " -r -F"
                              : " -x",
            fish_text(one.what));
    }
    return out;
}

std::string fish(const CLI::App& app) {
    std::string out = "# fish completion of redlock. Made by: redlock completion fish\n"
                      "complete -c redlock -f\n";
    out += fish_words(app, "");
    for (const CLI::App* one : apps_of(app)) {
        fmt::format_to(
            std::back_inserter(out),
            "complete -c redlock -n __fish_use_subcommand -a {} -d {}\n",
            one->get_name(),
            fish_text(one->get_description()));
        const std::string seen = "__fish_seen_subcommand_from " + one->get_name();
        out += fish_words(*one, " -n '" + seen + "'");
    }
    return out;
}

// --- man
// ------------------------------------------------------------------------------------------

std::string troff(std::string text) {
    text = replaced(std::move(text), "\\", "\\e");
    text = replaced(std::move(text), "-", "\\-");
    text = replaced(std::move(text), "\n.", "\n\\&.");
    text = replaced(std::move(text), "\n'", "\n\\&'");
    return text;
}

std::string man_options(const CLI::App& app) {
    std::string out;
    for (const word& one : words_of(app)) {
        fmt::format_to(
            std::back_inserter(out),
            ".TP\n\\fB{}\\fR{}{}\n{}.{}\n",
            troff(one.name),
            one.value.empty() ? "" : " ",
            troff(one.value),
            troff(one.what),
            one.usual.empty() ? "" : " Default: " + troff(one.usual) + ".");
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
    std::string out = man_head("redlock-" + app.get_name(), app.get_description());
    std::string resource;
    for (const CLI::Option* one : app.get_options()) {
        if (one->get_lnames().empty() && one->get_snames().empty()) {
            resource += " " + one->get_name();
        }
    }
    fmt::format_to(
        std::back_inserter(out),
        ".SH SYNOPSIS\n.B redlock {}\n[\\fIoptions\\fR]{}{}\n.SH OPTIONS\n{}",
        troff(app.get_name()),
        troff(resource),
        tail_of(app).empty() ? "" : " " + troff(std::string(tail_of(app))),
        man_options(app));
    std::string footer = app.get_footer();
    const std::string_view begin = "Examples:\n";
    footer.erase(0, footer.starts_with(begin) ? begin.size() : 0);
    const std::size_t gap = std::min(footer.find("\n\n"), footer.size());
    out += ".SH EXAMPLES\n.nf\n" + troff(footer.substr(0, gap)) + "\n.fi\n";
    if (gap < footer.size()) {
        out += ".SH NOTES\n" + troff(footer.substr(gap + 2)) + "\n";
    }
    return out + ".SH SEE ALSO\n.BR redlock (1)\n";
}

std::string man(const CLI::App& app) {
    std::string out = man_head("redlock", app.get_description());
    out += ".SH SYNOPSIS\n.B redlock\n\\fICOMMAND\\fR [\\fIoptions\\fR] ...\n.SH COMMANDS\n";
    for (const CLI::App* one : apps_of(app)) {
        fmt::format_to(
            std::back_inserter(out),
            ".TP\n.BR redlock\\-{} (1)\n{}.\n",
            troff(one->get_name()),
            troff(one->get_description()));
    }
    out += ".SH OPTIONS OF ALL COMMANDS\n" + man_options(app);
    out += ".SH ENVIRONMENT AND FILE\n" + troff(app.get_footer()) + "\n";
    out += ".SH EXIT STATUS\n"
           "That of the command if it ran, or 126 if it is not executable and 127 if it was not\n"
           "found. Otherwise 0 done, 200 held by another, 201 no quorum, 202 lost, 203 bad usage,\n"
           "204 bad configuration, 205 internal, 206 undecided, 207 warnings, 208 broken.\n";
    return out;
}

} // namespace

void add_completion(command_line& to) {
    const auto shell = std::make_shared<std::string>();
    CLI::App& completes = to.add(
        "completion",
        "Print a completion script for a shell",
        "  redlock completion bash > /etc/bash_completion.d/redlock\n"
        "  redlock completion zsh > /usr/local/share/zsh/site-functions/_redlock\n"
        "  redlock completion fish > ~/.config/fish/completions/redlock.fish");
    completes.add_option("SHELL", *shell, "bash, zsh or fish")
        ->required()
        ->type_name("")
        ->check(one_of({"bash", "zsh", "fish"}));
    to.when(completes, [shell, &to] {
        fmt::print(
            "{}",
            *shell == "bash"  ? bash(to.app)
            : *shell == "zsh" ? zsh(to.app)
                              : fish(to.app));
        return 0;
    });

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
            throw failure(
                exit_code::usage,
                fmt::format(
                    "unknown command '{}'{}", printable(*page), did_you_mean(*page, names)));
        }
        fmt::print("{}", man_of(*to.app.get_subcommand(*page)));
        return 0;
    });
}

} // namespace cli
