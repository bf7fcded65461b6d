#include "answer.hpp"

#include <charconv>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

namespace {

void append_line(std::string& out, char mark, std::int64_t number) {
    char digits[24];
    out += mark;
    out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
    out += "\r\n";
}

} // namespace

void answer::encode(std::string& out) const {
    switch (what) {
    case kind::status:
    case kind::error:
        out += what == kind::status ? '+' : '-';
        out += text;
        out += "\r\n";
        break;
    case kind::integer:
        append_line(out, ':', number);
        break;
    case kind::bulk:
        append_line(out, '$', static_cast<std::int64_t>(text.size()));
        out += text;
        out += "\r\n";
        break;
    case kind::nil:
        out += "$-1\r\n";
        break;
    case kind::array:
        append_line(out, '*', static_cast<std::int64_t>(items.size()));
        for (const answer& one : items) {
            one.encode(out);
        }
        break;
    }
}

std::string answer::describe() const {
    switch (what) {
    case kind::status:
    case kind::bulk:
        return text;
    case kind::error:
        return "(error) " + text;
    case kind::integer:
        return std::to_string(number);
    case kind::nil:
        return "(nil)";
    case kind::array:
        break;
    }
    if (items.empty()) {
        return "(empty array)";
    }
    std::string lines;
    for (std::size_t i = 0; i < items.size(); ++i) {
        lines += (i == 0 ? "" : "\n") + items[i].describe();
    }
    return lines;
}

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
