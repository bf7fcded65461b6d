#include "redaction.hpp"

#include "text.hpp"

#include <algorithm>
#include <vector>

namespace cli {
namespace {

constexpr std::string_view dots = "...";

std::vector<std::string>& hidden_values() {
    static std::vector<std::string> values; // as they are printed
    return values;
}

bool is_part(std::string_view text) {
    return std::ranges::any_of(hidden_values(), [&](const std::string& one) {
        return one.find(text) != std::string::npos;
    });
}

// Whether it is a part of a value, apart from a password that was left out of it. A separator, as
// in "allowed: '-', '_' and '.'", shows nothing.
bool shows(std::string_view quoted) {
    const std::string_view part = quoted.substr(0, quoted.find(dots));
    return part.size() > 1 && is_part(part);
}

} // namespace

void hide(std::string_view value) {
    if (!value.empty()) {
        hidden_values().push_back(printable(value));
    }
}

std::string without_hidden(std::string text) {
    bool any = false;
    const auto leave_out = [&](std::size_t from, std::size_t size) {
        text.replace(from, size, dots);
        any = true;
        return from + dots.size();
    };
    for (const std::string& one : hidden_values()) { // with its own quotes
        const std::string quoted = "'" + one + "'";
        for (std::size_t at = 0; (at = text.find(quoted, at)) != std::string::npos;) {
            at = leave_out(at + 1, one.size());
        }
    }
    for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; ++at) {
        const auto up_to = [&](std::size_t end) {
            return std::string_view(text).substr(at + 1, end - at - 1);
        };
        std::size_t end = text.find('\'', at + 1);
        for (std::size_t next = end; next != std::string::npos && is_part(up_to(next));
             next = text.find('\'', next + 1)) {
            end = next; // a part may have quotes of its own
        }
        if (end != std::string::npos && shows(up_to(end))) {
            at = leave_out(at + 1, end - at - 1);
        }
    }
    // A value without its unit, or one that resembles it.
    const std::size_t meant = any ? text.find(", did you mean ") : std::string::npos;
    if (meant == std::string::npos) {
        return text;
    }
    const std::size_t end = std::min(text.find('?', meant), text.size() - 1) + 1;
    return text.replace(meant, end - meant, end < text.size() ? "." : "");
}

} // namespace cli
