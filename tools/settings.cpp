#include "settings.hpp"

#include "exit_code.hpp"

#include <redlock/sizing.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace cli {
namespace {

std::string password_of(const std::string& path) {
    std::istringstream text(text_of_file(path));
    std::string line;
    std::getline(text, line);
    if (!line.empty() && line.back() == '\r') {
        line.pop_back();
    }
    if (line.empty()) {
        throw failure(
            exit_code::configuration,
            fmt::format(
                "the first line of {} is empty; write the password there", printable(path)));
    }
    return line;
}

void check(const redlock::error_code& error, const std::string& reason) {
    if (error) {
        throw failure(exit_code::configuration, in_options(reason));
    }
}

} // namespace

std::string text_of_file(const std::string& path) {
    std::string out;
    int error = 0;
    if (std::FILE* const file = std::fopen(path.c_str(), "re")) {
        std::array<char, 4096> part{};
        while (const std::size_t size = std::fread(part.data(), 1, part.size(), file)) {
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
            fmt::format("{} cannot be read: {}", printable(path), std::strerror(error)));
    }
    return out;
}

std::string in_options(std::string_view reason) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 15> options{{
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
        {"ca_file", "--tls-ca-file"},
        {"certificate_file", "--tls-certificate-file"},
        {"private_key_file", "--tls-private-key-file"},
    }};
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz_-0123456789";
    std::string out;
    while (!reason.empty()) {
        // Text in quotes is a value: a host may have any name.
        if (out.ends_with(" '") && reason.find('\'') != std::string_view::npos) {
            const std::size_t quote = reason.find('\'');
            out += reason.substr(0, quote);
            reason.remove_prefix(quote);
        }
        const std::size_t end = std::min(reason.find_first_not_of(letters), reason.size());
        const std::string_view word = reason.substr(0, std::max<std::size_t>(end, 1));
        reason.remove_prefix(word.size());
        std::int64_t ms = 0;
        const auto number = std::from_chars(word.data(), word.data() + word.size(), ms);
        const auto* const found = std::find_if(
            options.begin(), options.end(), [&](const auto& one) { return one.first == word; });
        if (number.ec == std::errc() && number.ptr == word.data() + word.size()
            && reason.starts_with(" ms")) {
            reason.remove_prefix(3);
            out += ms < 0 ? std::string(word) + "ms" : duration_text(milliseconds(ms));
        } else {
            out += found == options.end() ? word : found->second;
        }
    }
    return out;
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
            throw failure(exit_code::configuration, error.what());
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
    out.quarantine = given.no_quarantine ? redlock::quarantine::off : redlock::quarantine::on;
    out.username = given.username;
    out.password = given.password_file.empty() ? given.password : password_of(given.password_file);
    out.tls = given.tls;
    out.tls.verify = !given.tls_insecure;
    out.client_name = given.client_name;
    std::string reason;
    check(redlock::validate(out, reason), reason);
    // Other warnings come from doctor; a password without encryption cannot wait for that.
    if (const std::size_t begin = reason.find("tls is configured"); begin != std::string::npos) {
        say(reason.substr(begin, reason.find('\n', begin) - begin));
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
    return std::chrono::duration_cast<milliseconds>(redlock::times_of(config, {}).crash_longest);
}

redlock::acquire_options
options_of(const lock_wishes& wishes, redlock::wait_for usual, const redlock::config& config) {
    std::string reason;
    if (redlock::validate_resource(wishes.resource, reason)) {
        throw failure(exit_code::usage, reason);
    }
    redlock::acquire_options out;
    out.ttl = ttl_of(wishes.ttl, config);
    out.wait = !wishes.wait.empty()  ? parse_wait(wishes.wait)
               : wishes.skip_if_held ? redlock::wait_for::none()
                                     : usual;
    out.fencing = wishes.fencing;
    out.order = wishes.fifo ? redlock::fairness::fifo : redlock::fairness::none;
    check(redlock::validate(out, config, reason), reason);
    return out;
}

} // namespace cli
