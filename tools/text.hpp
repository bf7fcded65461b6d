// Text: durations, suggestions for misspelled words, and text that is safe for a terminal.

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

/// Parses "10s", "500ms", "2m", "1m30s". Throws `std::invalid_argument` with a suggestion.
milliseconds parse_duration(std::string_view text);

/// Returns the shortest exact form: "1m30s", "500ms", "0s".
std::string duration_text(milliseconds time);

/// Returns "0.4 ms".
std::string latency_text(std::chrono::microseconds time);

/// Returns the word that is nearest to `word`, if one is near enough to be a misspelling.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& words);

/// Returns ", did you mean X?" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& words);

/// Returns text that cannot move the cursor or colour the rest, without the user and the password
/// of a master's URL: a word in the wrong place may be one.
std::string printable(std::string_view text);

/// The same as `printable` for an unexpected argument: if it looks like "user:password@host", only
/// the host is left.
std::string misplaced(std::string_view word);

enum class tint { plain, good, fair, bad, faint };

/// Whether `stream` is a terminal that wants colours.
bool coloured(std::FILE* stream);

/// Returns `text` in a colour, if standard output has colours.
std::string tinted(tint colour, std::string_view text);

/// Prints one line on standard error with "redlock: " before it.
void say(std::string_view line);

/// Flushes standard output. Throws `failure` if that, or an earlier write, failed: the reader of an
/// incomplete report must not take it for a complete one. `error` is the number of an earlier
/// failure, if it is known.
void require_written(int error = 0);

} // namespace cli
