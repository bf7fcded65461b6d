#include "text.hpp"

#include "exit_code.hpp"

#include <fmt/format.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace cli {
namespace {

struct unit {
    std::string_view name;
    std::int64_t ms;
};

// The largest first, as they are written.
constexpr std::array units{
    unit{"d", 86'400'000},
    unit{"h", 3'600'000},
    unit{"m", 60'000},
    unit{"s", 1'000},
    unit{"ms", 1}};

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// Other spellings that people use; empty if no unit is meant.
std::string_view unit_meant(std::string_view word) {
    if (word.empty()) {
        return "s";
    }
    using spellings = std::array<std::string_view, 7>;
    constexpr std::array<std::pair<std::string_view, spellings>, 5> known{{
        {"ms", {"ms", "sm", "msec", "msecs", "millis", "millisecond", "milliseconds"}},
        {"s", {"s", "sec", "secs", "second", "seconds"}},
        {"m", {"m", "min", "mins", "minute", "minutes"}},
        {"h", {"h", "hr", "hrs", "hour", "hours"}},
        {"d", {"d", "day", "days"}},
    }};
    std::string low;
    std::transform(word.begin(), word.end(), std::back_inserter(low), lower);
    for (const auto& [unit, all] : known) {
        if (std::ranges::find(all, low) != all.end()) {
            return unit;
        }
    }
    return "";
}

[[noreturn]] void refuse(std::string_view text, std::string_view digits, std::string_view word) {
    const auto* const why = word.empty() ? "has no unit" : "has an unknown unit";
    const bool one_part = text.size() == digits.size() + word.size();
    word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    // A long number without a unit are milliseconds: nobody waits for 3000 s.
    const bool counts_ms = word.empty() && digits.size() > 3;
    const std::string_view meant = counts_ms ? "ms" : one_part ? unit_meant(word) : "";
    throw std::invalid_argument(
        meant.empty() ? fmt::format(
            "'{}' {}; write whole numbers with ms, s, m, h or d, as in 500ms or 1m30s",
            printable(text),
            why)
                      : fmt::format(
                          "'{}' {}, did you mean {}{}? Units are ms, s, m, h and d",
                          printable(text),
                          why,
                          digits,
                          meant));
}

// Number of characters to insert, remove or change, or to swap with the next.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> rows(
        a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    std::iota(rows[0].begin(), rows[0].end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        rows[i][0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t changed = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
            rows[i][j] = std::min({rows[i][j - 1] + 1, rows[i - 1][j] + 1, changed});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
            }
        }
    }
    return rows.back().back();
}

std::size_t find_lower(std::string_view text, std::string_view wanted, std::size_t from) {
    const auto at = std::search(
        text.begin() + static_cast<std::ptrdiff_t>(from),
        text.end(),
        wanted.begin(),
        wanted.end(),
        [](char a, char b) { return lower(a) == b; });
    return at == text.end() ? std::string_view::npos : static_cast<std::size_t>(at - text.begin());
}

// Removes what is a password in a master's URL, or was put in its place by mistake: before the last
// '@', in place of the port, and after "password=". A password may have nearly any character, so a
// URL ends where the next one begins.
std::string without_passwords(std::string_view text) {
    constexpr std::array<std::string_view, 3> schemes{"redis://", "rediss://", "unix://"};
    constexpr std::string_view parameter = "password=";
    constexpr std::string_view url_ends = " \t\r\n'\"";
    constexpr std::string_view address_ends = "/?#,; \t\r\n'\"";
    const auto next_url = [&](std::size_t from) {
        std::size_t found = std::string_view::npos;
        for (const std::string_view scheme : schemes) {
            const std::size_t at = find_lower(text, scheme, from);
            found = std::min(found, at == std::string_view::npos ? at : at + scheme.size());
        }
        return found;
    };
    std::string out;
    std::size_t done = 0;
    const auto leave_out = [&](std::size_t from, std::size_t to) {
        out.append(text.substr(done, from - done)).append("...");
        done = to;
    };
    for (std::size_t at = next_url(0); at != std::string_view::npos; at = next_url(at)) {
        const std::size_t end = std::min(next_url(at), text.size());
        std::size_t host = text.substr(0, end).rfind('@');
        while (host != std::string_view::npos && host > at
               && text.substr(host - 1, 3) == "'@'") { // a word about the character
            host = text.rfind('@', host - 1);
        }
        if (host != std::string_view::npos && host > at) {
            leave_out(at, host);
            continue;
        }
        const std::string_view rest = text.substr(0, end);
        std::size_t address_end = std::min(rest.find_first_of(address_ends, at), end);
        while (address_end > at && rest[address_end - 1] == ':') { // punctuation of the sentence
            --address_end;
        }
        const std::size_t port = rest.substr(0, address_end).find(':', at);
        if (port != std::string_view::npos && rest[at] != '['
            && rest.find_first_not_of("0123456789", port + 1) < address_end) {
            leave_out(port + 1, address_end);
        }
        const std::size_t url_end = std::min(text.find_first_of(url_ends, at), end);
        const std::size_t secret = find_lower(text, parameter, at);
        if (secret < url_end) {
            leave_out(secret + parameter.size(), url_end);
        }
    }
    out += text.substr(done);
    return out;
}

// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none.
std::size_t character_size(std::string_view text) {
    const auto at = [text](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
    };
    const auto within = [](unsigned value, unsigned low, unsigned high) {
        return value >= low && value <= high;
    };
    const unsigned first = at(0);
    const std::size_t size = first < 0x80                ? 1
                             : within(first, 0xc2, 0xdf) ? 2
                             : within(first, 0xe0, 0xef) ? 3
                             : within(first, 0xf0, 0xf4) ? 4
                                                         : 0;
    // What could be written shorter, halves of pairs, and what is above U+10FFFF.
    if ((first == 0xe0 && at(1) < 0xa0) || (first == 0xed && at(1) > 0x9f)
        || (first == 0xf0 && at(1) < 0x90) || (first == 0xf4 && at(1) > 0x8f)) {
        return 0;
    }
    for (std::size_t i = 1; i < size; ++i) {
        if (!within(at(i), 0x80, 0xbf)) {
            return 0;
        }
    }
    return size;
}

} // namespace

milliseconds parse_duration(std::string_view text) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max() / 1'000'000;
    constexpr milliseconds longest(most);
    std::string_view rest = text;
    std::int64_t sum = 0;
    while (!rest.empty()) {
        const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
        const std::string_view number = rest.substr(0, digits);
        rest.remove_prefix(digits);
        const std::string_view word =
            rest.substr(0, std::min(rest.find_first_of("0123456789"), rest.size()));
        rest.remove_prefix(word.size());
        std::int64_t value = 0;
        const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
        const bool huge = read.ec == std::errc::result_out_of_range;
        if (number.empty() || (read.ec != std::errc() && !huge)) {
            throw std::invalid_argument(fmt::format(
                "'{}' is not a duration; write 500ms, 10s, 2m or 1m30s", printable(text)));
        }
        const auto* const found =
            std::find_if(units.begin(), units.end(), [&](const unit& u) { return u.name == word; });
        if (found == units.end()) {
            // Only zero may have no unit.
            if (word.empty() && value == 0 && !huge && text == number) {
                return milliseconds(0);
            }
            refuse(text, number, word);
        }
        if (huge || value > most / found->ms || sum > most - value * found->ms) {
            throw std::invalid_argument(fmt::format(
                "'{}' is too long; allowed: at most {}", printable(text), duration_text(longest)));
        }
        sum += value * found->ms;
    }
    if (text.empty()) {
        throw std::invalid_argument("a duration is missing; write 500ms, 10s, 2m or 1m30s");
    }
    return milliseconds(sum);
}

std::string duration_text(milliseconds time) {
    std::string out;
    std::int64_t left = time.count();
    for (const unit& one : units) {
        if (left >= one.ms) {
            fmt::format_to(std::back_inserter(out), "{}{}", left / one.ms, one.name);
            left %= one.ms;
        }
    }
    return out.empty() ? "0s" : out;
}

std::string latency_text(std::chrono::microseconds time) {
    return fmt::format("{:.1f} ms", static_cast<double>(time.count()) / 1'000);
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& words) {
    std::optional<std::string> best;
    // One mistake in a short name, two in a long one: what is farther off was not meant.
    std::size_t least = (word.size() < 7 ? 1 : 2) + 1;
    for (const std::string& one : words) {
        // Half a name is a good abbreviation: --prot.
        const std::size_t far = word.size() >= 4 && one.starts_with(word) ? 1 : distance(word, one);
        if (far < least) {
            least = far;
            best = one;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& words) {
    const auto best = nearest(word, words);
    return best ? fmt::format(", did you mean {}?", *best) : "";
}

std::string printable(std::string_view text) {
    const std::string shown = without_passwords(text);
    std::string out;
    for (std::string_view rest = shown; !rest.empty();) {
        const std::size_t size = character_size(rest);
        const auto byte = static_cast<unsigned char>(rest.front());
        const auto last = static_cast<unsigned char>(rest[size == 0 ? 0 : size - 1]);
        if (size == 0 || byte < 0x20 || byte == 0x7f) {
            // A terminal that does not expect UTF-8 obeys some of these bytes.
            fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
        } else if (byte == 0xc2 && last <= 0x9f) { // control characters as well
            fmt::format_to(std::back_inserter(out), "\\u{:04x}", last);
        } else {
            out += rest.substr(0, size);
        }
        rest.remove_prefix(std::max<std::size_t>(size, 1));
    }
    return out;
}

std::string misplaced(std::string_view word) {
    const std::size_t host = word.rfind('@');
    return printable(
        host != std::string_view::npos && word.find(':') < host
            ? fmt::format("...{}", word.substr(host))
            : std::string(word));
}

bool coloured(std::FILE* stream) {
    const char* const none = std::getenv("NO_COLOR");
    const char* const terminal = std::getenv("TERM");
    return (none == nullptr || *none == '\0') && ::isatty(::fileno(stream)) == 1
           && (terminal == nullptr || std::string_view(terminal) != "dumb");
}

std::string tinted(tint colour, std::string_view text) {
    static const bool wanted = coloured(stdout);
    if (!wanted || colour == tint::plain) {
        return std::string(text);
    }
    const int code = colour == tint::good   ? 32
                     : colour == tint::fair ? 33
                     : colour == tint::bad  ? 31
                                            : 2;
    return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

void require_written(int error) {
    errno = error;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        throw failure(
            exit_code::internal,
            fmt::format(
                "cannot write to standard output: {}",
                errno != 0 ? std::strerror(errno) : "an earlier write failed"));
    }
}

void say(std::string_view line) {
    // One write: lines of several processes on one terminal or in one log stay whole.
    constexpr std::string_view name = "redlock: "; // messages of the library begin with it
    const std::string whole =
        fmt::format("{}{}\n", line.starts_with(name) ? "" : name, without_passwords(line));
    // The reader of a pipeline may have ended: that must not end this program, which has a lock.
    sigset_t broken;
    sigset_t before;
    ::sigemptyset(&broken);
    ::sigaddset(&broken, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &broken, &before);
    constexpr timespec no_wait{};
    if (::write(STDERR_FILENO, whole.data(), whole.size()) < 0 && errno == EPIPE) {
        ::sigtimedwait(&broken, nullptr, &no_wait);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

} // namespace cli
