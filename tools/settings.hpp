// Settings of all commands: the masters, and how to connect to them.

#pragma once

#include "config/invalid_value.hpp"
#include "exit_code.hpp"
#include "text.hpp"

#include <redlock/config.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

/// Values as they were given. `config_of` interprets them.
struct settings {
    std::vector<std::string> masters;
    std::string prefix = "redlock:";
    std::string protocol = "guarded";
    milliseconds max_ttl{0};
    double clock_drift_factor = 0.01;
    milliseconds clock_drift_margin{2};
    milliseconds clock_offset_bound{1'000};
    milliseconds connect_timeout{2'000};
    milliseconds master_timeout{100};
    bool no_quarantine = false;
    std::string username;
    std::string password;
    std::string password_file;
    redlock::tls_options tls;
    bool tls_insecure = false;
    std::string client_name = "redlock";
    bool json = false;
    bool verbose = false;
    bool parent_death = false;
};

/// Returns the contents of a file of at most `longest` bytes. Throws `failure` with
/// `exit_code::configuration` and the system's reason, or the limit if the file is larger.
std::string text_of_file(const std::string& path, std::size_t longest);

/// Returns the first line of a file. Throws the same, also if it is empty.
std::string password_of(const std::string& path);

/// Describes an invalid value in the terms of the tool: options, and durations as they are written.
std::string in_options(const redlock::detail::invalid_value& bad);
/// Throws `failure` with this status if a value is invalid.
void require(const redlock::detail::validation& valid, exit_code status);

/// Throws `failure` with `exit_code::configuration`.
redlock::config config_of(const settings& given);
/// The same for a command that only shows something: it founds no quorum.
redlock::config reading_config_of(const settings& given);
/// The same for a command that takes no lock: the masters record no longer quarantine because of
/// it, whatever its max_ttl.
redlock::config watching(redlock::config how);
redlock::config watching_config_of(const settings& given);

/// Replaces `redlock::default_ttl` by the ttl that the library takes for it.
milliseconds ttl_of(milliseconds given, const redlock::config& config);

/// Options of one acquire that several commands have.
struct lock_wishes {
    std::string resource;
    std::string wait;
    milliseconds ttl = redlock::default_ttl;
    bool fencing = false;
    bool fifo = false;
    bool skip_if_held = false;
    int conflict_exit_code = 200; ///< in place of `exit_code::held`
};

/// Parses a wait: "none", "forever" or a duration. Throws `std::invalid_argument`.
redlock::wait_for parse_wait(std::string_view text);

/// With the wait of the options, or `usual`. Throws `failure` for what `config` does not allow.
redlock::acquire_options
options_of(const lock_wishes& wishes, redlock::wait_for usual, const redlock::config& config);

} // namespace cli
