#include "settings.hpp"

#include "exit_code.hpp"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

namespace cli {
namespace {

std::string first_line_of(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    if (!file || (!std::getline(file, line) && !file.eof())) {
        throw failure(
            exit_code::configuration, fmt::format("the password file {} cannot be read", path));
    }
    if (!line.empty() && line.back() == '\r') {
        line.pop_back();
    }
    return line;
}

void check(const redlock::error_code& error, const std::string& reason) {
    if (error) {
        throw failure(exit_code::configuration, reason);
    }
}

} // namespace

redlock::config config_of(const settings& given) {
    if (given.masters.empty()) {
        throw failure(
            exit_code::configuration,
            "no masters: name them with --masters redis://host:port,..., with REDLOCK_MASTERS or "
            "in "
            "the file that --config names");
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
    out.password =
        given.password_file.empty() ? given.password : first_line_of(given.password_file);
    out.tls = given.tls;
    out.tls.verify = !given.tls_insecure;
    out.client_name = given.client_name;
    std::string reason;
    check(redlock::validate(out, reason), reason);
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
            "'{}' is no wait: none, forever or a duration such as 10s{}",
            printable(text),
            did_you_mean(text, {"none", "forever"})));
    }
    return parse_duration(text);
}

redlock::acquire_options
options_of(const lock_wishes& wishes, redlock::wait_for usual, const redlock::config& config) {
    std::string reason;
    if (redlock::validate_resource(wishes.resource, reason)) {
        throw failure(exit_code::usage, reason);
    }
    redlock::acquire_options out;
    out.ttl = wishes.ttl;
    out.wait = !wishes.wait.empty()  ? parse_wait(wishes.wait)
               : wishes.skip_if_held ? redlock::wait_for::none()
                                     : usual;
    out.fencing = wishes.fencing;
    out.order = wishes.fifo ? redlock::fairness::fifo : redlock::fairness::none;
    check(redlock::validate(out, config, reason), reason);
    return out;
}

} // namespace cli
