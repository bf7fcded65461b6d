#include "toml.hpp"

#include "text.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace cli {
namespace {

constexpr std::string_view key_letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

[[noreturn]] void refuse(std::size_t line, std::string_view key, std::string_view why) {
    // Shows the name and never a value or a part of one, which may be a password.
    throw std::invalid_argument(
        fmt::format("line {}: {}{}{}", line, printable(key), key.empty() ? "" : ": ", why));
}

// Returns the key before the `=` in a line, if there is one.
std::string key_in(std::string_view text, std::size_t line) {
    for (; line > 1 && !text.empty(); --line) {
        text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    }
    text = text.substr(0, text.find('\n'));
    const std::size_t from = std::min(text.find_first_not_of(" \t"), text.size());
    const std::size_t to = std::min(text.find_first_not_of(key_letters, from), text.size());
    const std::size_t mark = text.find_first_not_of(" \t", to);
    return mark != std::string_view::npos && text[mark] == '='
               ? std::string(text.substr(from, to - from))
               : "";
}

// Returns the reason of the parser, without what it quotes from the file.
std::string_view reason_of(std::string_view description) {
    if (const std::size_t scope = description.find(": "); scope != std::string_view::npos) {
        description.remove_prefix(scope + 2);
    }
    description = description.substr(0, description.find(", saw"));
    description = description.substr(0, description.find(" (TOML_")); // its constants
    if (!description.starts_with("expected ")) {
        description = description.substr(0, description.find('\''));
    }
    return description.substr(0, description.find_last_not_of(' ') + 1);
}

std::string text_of(const toml::node& value, const toml_entry& of) {
    if (const auto* const text = value.as_string()) {
        return text->get();
    }
    if (const auto* const number = value.as_integer()) {
        return fmt::to_string(number->get());
    }
    if (const auto* const number = value.as_floating_point()) {
        return fmt::to_string(number->get());
    }
    if (const auto* const flag = value.as_boolean()) {
        return flag->get() ? "true" : "false";
    }
    refuse(of.line, of.key, "allowed: text in quotes, a number, true, false, or an array of these");
}

toml_entry entry_of(std::string_view section, const toml::key& key, const toml::node& value) {
    toml_entry out{std::string(section), std::string(key.str()), {}, key.source().begin.line};
    if (const toml::array* const values = value.as_array()) {
        for (const toml::node& one : *values) {
            out.values.push_back(text_of(one, out));
        }
    } else {
        out.values.push_back(text_of(value, out));
    }
    return out;
}

} // namespace

std::vector<toml_entry> read_toml(const std::string& text) {
    std::vector<toml_entry> out;
    try {
        const toml::table file = toml::parse(text);
        for (const auto& [name, value] : file) {
            if (const toml::table* const section = value.as_table()) {
                for (const auto& [key, inner] : *section) {
                    out.push_back(entry_of(name.str(), key, inner));
                }
            } else {
                out.push_back(entry_of("", name, value));
            }
        }
    } catch (const toml::parse_error& error) {
        const std::size_t line = error.source().begin.line;
        const std::string_view reason = reason_of(error.description());
        refuse(
            line,
            key_in(text, line),
            fmt::format(
                "not valid TOML{}{}{}; put text and durations in quotes, one value per line",
                reason.empty() ? "" : " (",
                reason,
                reason.empty() ? "" : ")"));
    }
    // The table is ordered by name, and the first error has to be that of the first line.
    std::stable_sort(out.begin(), out.end(), [](const toml_entry& one, const toml_entry& other) {
        return one.line < other.line;
    });
    return out;
}

} // namespace cli
