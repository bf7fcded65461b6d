#include "help.hpp"

#include "command_line.hpp"
#include "resolution.hpp"
#include "words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cli {
namespace {

constexpr const char* first_examples =
    "\n"
    "  redlock run nightly-report -- /usr/local/bin/report    # on one machine at a time\n"
    "  redlock run --wait none cron/clean -- clean-up         # or not at all\n"
    "  redlock status nightly-report                          # its holder\n";

} // namespace

std::string
help_formatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
    if (app->get_parent() != nullptr) {
        return CLI::Formatter::make_help(app, std::move(name), mode);
    }
    return make_description(app) + first_examples + make_subcommands(app, mode)
           + make_groups(app, mode) + make_footer(app);
}

std::string help_formatter::make_usage(const CLI::App* app, std::string name) const {
    std::string out = CLI::Formatter::make_usage(app, std::move(name));
    if (tail_of(*app).empty()) {
        return out;
    }
    out.erase(out.find_last_not_of('\n') + 1);
    return fmt::format("{} {}\n", out, tail_of(*app));
}

std::string help_formatter::make_option_opts(const CLI::Option* one) const {
    const std::string kind = kind_of(*one);
    return one->get_type_size() == 0 || kind.empty() ? "" : " " + kind;
}

std::string help_formatter::make_option_desc(const CLI::Option* one) const {
    const std::string usual = one->get_type_size() == 0 ? "" : one->get_default_str();
    const bool said = one->get_description().find("default") != std::string::npos;
    return usual.empty() || said ? one->get_description()
                                 : fmt::format("{} (default: {})", one->get_description(), usual);
}

void take_help(std::vector<std::string>& words, const CLI::App& app) {
    const auto rest = std::find_if(
        words.begin(), words.end(), [](const std::string& word) { return word != "help"; });
    if (rest == words.begin()) {
        return;
    }
    words.erase(words.begin(), rest);
    const std::vector<std::string> all = commands_of(app);
    if (words.empty() || std::find(all.begin(), all.end(), words.front()) != all.end()) {
        words.push_back("--help");
    }
}

} // namespace cli
