#include "completion.hpp"

#include "command_line.hpp"
#include "options.hpp"
#include "words.hpp"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <memory>
#include <string_view>

namespace cli {
namespace {

std::string joined(const std::vector<listed_option>& words, bool with_value) {
    std::string out;
    for (const listed_option& one : words) {
        if (!with_value || !one.value.empty()) {
            out += (out.empty() ? "" : with_value ? "|" : " ") + one.name;
        }
    }
    return out;
}

std::string bash(const CLI::App& app) {
    std::string names;
    std::string cases;
    std::string valued = joined(options_listed(app), true);
    std::string files;
    std::map<std::string, std::string> values; // a name means the same in all commands
    const auto note = [&](const CLI::App& of) {
        for (const listed_option& one : options_listed(of)) {
            if (one.file) {
                files += (files.empty() ? "" : "|") + one.name;
            } else if (!one.values.empty()) {
                values[one.name] = fmt::format("{}", fmt::join(one.values, " "));
            }
        }
    };
    note(app);
    for (const CLI::App* one : apps_of(app)) {
        names += (names.empty() ? "" : " ") + one->get_name();
        note(*one);
        cases += fmt::format(
            "    {}) options=\"{} {}\" ;;\n",
            one->get_name(),
            fmt::join(arguments_of(*one), " "),
            joined(options_listed(*one), false));
        const std::string more = joined(options_listed(*one), true);
        valued += more.empty() ? "" : "|" + more;
    }
    std::string offers;
    for (const auto& [name, words] : values) {
        fmt::format_to(
            std::back_inserter(offers),
            "    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return ;;\n",
            name,
            words);
    }
    return fmt::format(
        R"(# bash completion of redlock. Made by: redlock completion bash
_redlock() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    local command='' options='' i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${{COMP_WORDS[i]}} in
        --)
            if ((i + 1 == COMP_CWORD)) && [[ $current != */* ]]; then
                mapfile -t COMPREPLY < <(compgen -c -- "$current")
            else
                compopt -o default # names of files, which may have spaces
            fi
            return
            ;;
        {valued}) ((i++)) || : ;;
        -*) ;;
        *) [ -n "$command" ] || command=${{COMP_WORDS[i]}} ;;
        esac
    done
    case $previous in
    {files}) compopt -o default; return ;;
{offers}    {valued}) return ;;
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
        fmt::arg("offers", offers),
        fmt::arg("names", names),
        fmt::arg("cases", cases),
        fmt::arg("common", joined(options_listed(app), false)));
}

// A description inside '...[...]...'.
std::string zsh_text(std::string text) {
    for (const std::string_view c : {"[", "]", ":"}) {
        text = replaced(std::move(text), c, "\\" + std::string(c));
    }
    return replaced(std::move(text), "'", "'\\''");
}

std::string zsh_values(const std::vector<std::string>& values) {
    return values.empty() ? " " : fmt::format("({})", fmt::join(values, " "));
}

std::string zsh_words(const CLI::App& app, std::string_view indent) {
    std::string out;
    for (const listed_option& one : options_listed(app)) {
        const std::string value =
            one.value.empty()
                ? ""
                : fmt::format(
                    ":{}:{}", zsh_text(one.value), one.file ? "_files" : zsh_values(one.values));
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
            runs_a_command(*one)         ? "'1:resource: ' '*:: :_normal'"
            : arguments_of(*one).empty() ? "'*:resource: '"
                                         : "'1:what:" + zsh_values(arguments_of(*one)) + "'");
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

std::string fish_values(const std::vector<std::string>& values) {
    return values.empty() ? "" : fmt::format(" -a '{}'", fmt::join(values, " "));
}

std::string fish_words(const CLI::App& app, const std::string& condition) {
    std::string out;
    for (const listed_option& one : options_listed(app)) {
        fmt::format_to(
            std::back_inserter(out),
            "complete -c redlock{} -l {}{}{} -d {}\n",
            condition,
            one.name.substr(2),
            one.value.empty() ? ""
            : one.file        ? " -r -F"
                              : " -x",
            fish_values(one.values),
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
        if (const std::string values = fish_values(arguments_of(*one)); !values.empty()) {
            out += "complete -c redlock -n '" + seen + "'" + values + "\n";
        }
    }
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
    completes.add_option("SHELL", *shell, "Name of the shell")
        ->required()
        ->type_name("bash|zsh|fish")
        ->check(one_of({"bash", "zsh", "fish"}));
    to.when(completes, [shell, &to] {
        fmt::print(
            "{}",
            *shell == "bash"  ? bash(to.app)
            : *shell == "zsh" ? zsh(to.app)
                              : fish(to.app));
        return 0;
    });
}

} // namespace cli
