#include "words.hpp"

#include "command_line.hpp"
#include "resolution.hpp"

#include <algorithm>

namespace cli {
namespace {

// Those in lower case: a name in upper case stands for any value of a kind.
std::vector<std::string> values_in(std::string_view kind) {
    std::vector<std::string> out;
    while (!kind.empty()) {
        const std::string_view one = kind.substr(0, kind.find('|'));
        if (!one.empty() && one.front() >= 'a' && one.front() <= 'z') {
            out.emplace_back(one);
        }
        kind.remove_prefix(std::min(one.size() + 1, kind.size()));
    }
    return out;
}

} // namespace

std::string kind_of(const CLI::Option& option) {
    // Validators append what they check. "[ADDRESS:]PORT" is one kind.
    const std::string name = option.get_type_name();
    return name.substr(0, name.find(':', name.find(']') == std::string::npos ? 0 : name.find(']')));
}

std::vector<listed_option> options_listed(const CLI::App& app) {
    std::vector<listed_option> out;
    for (const CLI::Option* one : app.get_options()) {
        if (one->get_lnames().empty() || one->get_group().empty()) {
            continue;
        }
        const bool flag = one->get_type_size_max() == 0;
        const std::string value = flag ? "" : kind_of(*one);
        out.push_back(
            {"--" + long_name(*one),
             one->get_snames().empty() ? "" : "-" + one->get_snames().front(),
             one->get_description(),
             value,
             flag ? "" : one->get_default_str(),
             values_in(value),
             value == "FILE"});
    }
    return out;
}

std::vector<std::string> arguments_of(const CLI::App& app) {
    if (app.get_name() == "man") {
        return commands_of(*app.get_parent());
    }
    for (const CLI::Option* one : app.get_options()) {
        if (one->get_positional()) {
            return values_in(kind_of(*one));
        }
    }
    return {};
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

} // namespace cli
