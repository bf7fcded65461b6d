// Words: durations, what was probably meant, and what a terminal may be sent.

#pragma once

#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

using std::chrono::milliseconds;

/// "10s", "500ms", "2m", "1m30s". Throws `std::invalid_argument` with a sentence that names what
/// was probably meant.
milliseconds parse_duration(std::string_view text);

/// The shortest form that says it all: "1m30s", "500ms", "0s".
std::string duration_text(milliseconds time);

/// "0.4 ms".
std::string latency_text(std::chrono::microseconds time);

/// The word that is nearest to `word`, if one is near enough to be a slip.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& words);

/// ", did you mean X?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& words);

/// Nothing in it can move the cursor or colour the rest, and of a master's URL the user and the
/// password are left out: a word in the wrong place may be one.
std::string printable(std::string_view text);

/// `printable`, for a word of the command line that stands where none is expected: if it looks like
/// "user:password@host", only the host is left.
std::string misplaced(std::string_view word);

enum class tint { plain, good, fair, bad, faint };

/// Whether `stream` is a terminal that wants colours.
bool coloured(std::FILE* stream);

/// `text` in a colour, if standard output has any.
std::string tinted(tint colour, std::string_view text);

/// One line on standard error, "redlock: " before it.
void say(std::string_view line);

/// Writes out what standard output still has. Throws `failure` if that, or anything before it, did
/// not arrive: who reads a report that is cut off must not take it for a whole one. `error` is the
/// system's number of an earlier failure, if it is known.
void require_written(int error = 0);

} // namespace cli
