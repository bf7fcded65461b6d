#include "settings.hpp"

#include "config/sizing.hpp"
#include "exit_code.hpp"
#include "redaction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <variant>

namespace cli {
namespace {

std::string text_of_setting(const redlock::detail::setting_value& value) {
    struct {
        std::string operator()(std::monostate) const { return {}; }
        std::string operator()(milliseconds it) const {
            return it.count() < 0 ? fmt::format("{}ms", it.count()) : duration_text(it);
        }
        std::string operator()(std::int64_t it) const { return fmt::format("{}", it); }
        std::string operator()(double it) const { return fmt::format("{}", it); }
        std::string operator()(const std::string& it) const {
            return it.empty() ? "empty" : fmt::format("'{}'", printable(it));
        }
    } to_text;
    return std::visit(to_text, value);
}

std::string entry_of_masters(std::size_t number) {
    return fmt::format("entry {} of --masters", number + 1);
}

// "the name of entry 1 of --masters" for "masters[0].name".
std::string entry_of_masters(const std::string& field) {
    const std::size_t dot = field.find('.');
    return (dot == std::string::npos ? "" : fmt::format("the {} of ", field.substr(dot + 1)))
           + entry_of_masters(
               std::strtoul(field.c_str() + std::string_view("masters[").size(), nullptr, 10));
}

std::string option_of(const std::string& field) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 21> options{{
        {"ttl", "--ttl"},
        {"wait", "--wait"},
        {"max_hold", "--max-hold"},
        {"stop_margin", "--grace"},
        {"key_prefix", "--prefix"},
        {"protocol", "--protocol"},
        {"max_ttl", "--max-ttl"},
        {"master_timeout", "--master-timeout"},
        {"connect_timeout", "--connect-timeout"},
        {"clock_drift_factor", "--clock-drift-factor"},
        {"clock_drift_margin", "--clock-drift-margin"},
        {"clock_offset_bound", "--clock-offset-bound"},
        {"username", "--username"},
        {"client_name", "--client-name"},
        {"tls.ca_file", "--tls-ca-file"},
        {"tls.certificate_file", "--tls-certificate-file"},
        {"tls.private_key_file", "--tls-private-key-file"},
        {"resource", "the name"},
        {"secret", "the token"},
        {"member", "MASTER"},
        {"change.max_ttl", "TTL"},
    }};
    const auto* const found =
        std::ranges::find(options, field, &std::pair<std::string_view, std::string_view>::first);
    return found != options.end()          ? std::string(found->second)
           : field.starts_with("masters[") ? entry_of_masters(field)
                                           : (field == "masters" ? "--" : "the ") + field;
}

} // namespace

std::string text_of_file(const std::string& path, std::size_t longest) {
    std::string out;
    int error = 0;
    if (std::FILE* const file = std::fopen(path.c_str(), "re")) {
        std::array<char, 4096> part{};
        while (out.size() <= longest) {
            const std::size_t size = std::fread(part.data(), 1, part.size(), file);
            if (size == 0) {
                break;
            }
            out.append(part.data(), size);
        }
        // A directory can be opened, but not read.
        error = std::ferror(file) != 0 ? errno : 0;
        std::fclose(file);
    } else {
        error = errno;
    }
    if (error != 0) {
        throw failure(
            exit_code::configuration,
            fmt::format("'{}' cannot be read: {}", printable(path), std::strerror(error)));
    }
    if (out.size() > longest) {
        throw failure(
            exit_code::configuration,
            fmt::format(
                "{} is too large; allowed: at most {} KiB", printable(path), longest / 1024));
    }
    return out;
}

std::string password_of(const std::string& path) {
    constexpr std::size_t longest = 4096 * 1024; // as the library takes it
    std::istringstream text;
    try {
        text.str(text_of_file(path, longest));
    } catch (const failure& error) {
        throw failure(exit_code::configuration, fmt::format("--password-file: {}", error.what()));
    }
    std::string line;
    std::getline(text, line);
    if (!line.empty() && line.back() == '\r') {
        line.pop_back();
    }
    if (line.empty()) {
        throw failure(
            exit_code::configuration,
            fmt::format(
                "--password-file: the first line of '{}' is empty; write the password there",
                printable(path)));
    }
    return line;
}

std::string in_options(const redlock::detail::invalid_value& bad) {
    const std::string low = text_of_setting(bad.minimum);
    const std::string high = text_of_setting(bad.maximum);
    const bool by_option =
        bad.field == "ttl" && bad.maximum != redlock::detail::setting_value(std::chrono::hours(24));
    std::string out = fmt::format(
        "{} {} {}{}{}",
        option_of(bad.field),
        bad.unit.empty() ? "is" : "has",
        text_of_setting(bad.value),
        bad.unit.empty() ? "" : " ",
        bad.unit);
    if (!low.empty()) {
        out += "; allowed: "
               + (bad.field == "max_hold" ? low + " (longer than --grace) or more"
                  : high.empty()          ? low + " or more"
                  : low == high           ? low
                  : by_option             ? fmt::format("{} to --max-ttl, {}", low, high)
                                          : fmt::format("{} to {}", low, high));
    }
    std::string rule = bad.rule;
    if (rule.starts_with("masters[")) {
        const std::size_t end = std::min(rule.find(' '), rule.size());
        rule.replace(0, end, entry_of_masters(rule.substr(0, end)));
    }
    return rule.empty() ? out : out + (low.empty() ? "; " : ", ") + rule;
}

void require(const redlock::detail::validation& valid, exit_code status) {
    if (!valid) {
        throw failure(status, in_options(valid.error()));
    }
}

redlock::config reading_config_of(const settings& given) {
    redlock::config how = config_of(given);
    how.founds_quorum = false;
    return how;
}

redlock::config watching(redlock::config how) {
    how.founds_quorum = false;
    if (how.protocol == redlock::protocol::guarded) {
        how.max_ttl = milliseconds(0);
    }
    return how;
}

redlock::config watching_config_of(const settings& given) {
    return watching(config_of(given));
}

redlock::config config_of(const settings& given) {
    if (given.masters.empty()) {
        throw failure(
            exit_code::configuration,
            "no masters: name them with --masters redis://host:port,..., with REDLOCK_MASTERS or "
            "in "
            "the file that --config names; redlock local starts some to try it with");
    }
    redlock::config out;
    for (const std::string& url : given.masters) {
        try {
            out.masters.emplace_back(url);
        } catch (const std::invalid_argument& error) {
            std::string_view text = error.what();
            text.remove_prefix(text.starts_with("redlock: ") ? sizeof("redlock: ") - 1 : 0);
            const std::string shown = without_hidden(std::string(text));
            throw failure(
                exit_code::configuration,
                (shown == text ? "" : entry_of_masters(out.masters.size()) + ": ") + shown);
        }
    }
    out.protocol =
        given.protocol == "plain" ? redlock::protocol::plain : redlock::protocol::guarded;
    out.key_prefix = given.prefix;
    out.max_ttl = given.max_ttl;
    out.clock_drift_factor = given.clock_drift_factor;
    out.clock_drift_margin = given.clock_drift_margin;
    out.clock_offset_bound = given.clock_offset_bound;
    out.connect_timeout = given.connect_timeout;
    out.master_timeout = given.master_timeout;
    out.quarantine = !given.no_quarantine;
    out.username = given.username;
    out.password = given.password_file.empty() ? given.password : password_of(given.password_file);
    std::error_code unknown;
    if (std::filesystem::is_regular_file(given.password_file, unknown)) { // a pipe is read once
        out.password.clear();
        out.password_file = given.password_file;
    }
    out.tls = given.tls;
    out.tls.verify = !given.tls_insecure;
    out.client_name = given.client_name;
    require(redlock::detail::check(out), exit_code::configuration);
    // Other warnings come from doctor; a password without encryption cannot wait for that.
    if (const std::string_view tls = redlock::detail::unused_tls(out); !tls.empty()) {
        say(tls);
    }
    if (given.verbose) {
        out.log.level = redlock::log_level::info;
        out.log.write = [](redlock::log_level, std::string_view line) { say(printable(line)); };
    }
    return out;
}

redlock::wait_for parse_wait(std::string_view text) {
    if (text == "none") {
        return redlock::wait_for::none();
    }
    if (text == "forever") {
        return redlock::wait_for::forever();
    }
    if (text.find_first_of("0123456789") != 0) {
        throw std::invalid_argument(fmt::format(
            "'{}' is not a wait; write none, forever or a duration such as 10s{}",
            printable(text),
            did_you_mean(text, {"none", "forever"})));
    }
    return parse_duration(text);
}

milliseconds ttl_of(milliseconds given, const redlock::config& config) {
    if (given != redlock::default_ttl) {
        return given;
    }
    // A lock whose holder crashes just after the acquire lives for its ttl.
    return std::chrono::duration_cast<milliseconds>(
        redlock::detail::times_of(config, {}).crash_longest);
}

redlock::acquire_options
options_of(const lock_wishes& wishes, redlock::wait_for usual, const redlock::config& config) {
    require(redlock::detail::check_resource(wishes.resource), exit_code::usage);
    redlock::acquire_options out;
    out.ttl = wishes.ttl; // the library shortens the usual one to that of the quorum
    out.wait = !wishes.wait.empty()  ? parse_wait(wishes.wait)
               : wishes.skip_if_held ? redlock::wait_for::none()
                                     : usual;
    out.fencing = wishes.fencing;
    out.transferable = true; // the token is printed, or in the environment of the command
    out.fifo = wishes.fifo;
    require(redlock::detail::check(out, config), exit_code::configuration);
    return out;
}

} // namespace cli
