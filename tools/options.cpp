#include "options.hpp"

#include "resolution.hpp"
#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace cli {

CLI::Validator one_of(std::vector<std::string> words) {
    return CLI::Validator(
        [words = std::move(words)](const std::string& text) {
            if (std::find(words.begin(), words.end(), text) != words.end()) {
                return std::string();
            }
            return fmt::format(
                "invalid value '{}'; allowed: {}{}",
                printable(text),
                fmt::join(words, ", "),
                did_you_mean(text, words));
        },
        "");
}

CLI::Validator whole_number(std::size_t low, std::size_t high) {
    return CLI::Validator(
        [low, high](const std::string& text) {
            std::size_t value = 0;
            const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
            const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
            return whole && value >= low && value <= high
                       ? std::string()
                       : fmt::format(
                           "'{}' is not a number from {} to {}", printable(text), low, high);
        },
        "");
}

CLI::Validator number_between(double low, double high) {
    return CLI::Validator(
        [low, high](const std::string& text) {
            double value = 0;
            return CLI::detail::lexical_cast(text, value) && value >= low && value <= high
                       ? std::string()
                       : fmt::format(
                           "'{}' is not a number from {} to {}", printable(text), low, high);
        },
        "");
}

CLI::Option*
add_duration(CLI::App& app, const std::string& name, milliseconds& into, const std::string& what) {
    CLI::Option* const out = app.add_option_function<std::string>(
        name,
        [&into, name](const std::string& text) {
            try {
                into = parse_duration(text);
            } catch (const std::invalid_argument& error) {
                throw CLI::ValidationError(name, error.what());
            }
        },
        what);
    return out->type_name("DURATION")->default_str(duration_text(into));
}

void add_ttl(CLI::App& app, milliseconds& into, const std::string& what) {
    add_duration(app, "--ttl", into, what)->default_str("10s, at most --max-ttl");
}

void add_resource(CLI::App& app, std::string& into) {
    app.add_option("RESOURCE", into, "Name of the resource")->required()->type_name("");
}

void add_wishes(CLI::App& app, lock_wishes& into, const std::string& usual_wait) {
    add_resource(app, into.resource);
    add_ttl(app, into.ttl, "Duration of the lease; a crash blocks others for this long");
    app.add_option_function<std::string>(
           "--wait",
           [&into](const std::string& text) {
               try {
                   parse_wait(text);
                   into.wait = text;
               } catch (const std::invalid_argument& error) {
                   throw CLI::ValidationError("--wait", error.what());
               }
           },
           "Longest wait for the lock; none: one attempt, after at most --connect-timeout")
        ->type_name("none|DURATION|forever")
        ->default_str(usual_wait);
    app.add_option(
           "-E,--conflict-exit-code",
           into.conflict_exit_code,
           "Exit status to use in place of 200 if the lock is held")
        ->check(whole_number(0, 255))
        ->type_name("STATUS")
        ->capture_default_str();
    app.add_flag(
        "--fencing", into.fencing, "Request a fencing token; all owners must do so, or none");
    app.add_flag("--fifo", into.fifo, "Serve waiters in the order of arrival");
}

namespace {

// CLI11 leaves out empty parts. A variable without a value, as in $A,$B,$C, must not make a smaller
// quorum. The text is not shown, because it may contain passwords.
std::vector<std::string> addresses_of(const std::vector<std::string>& lists) {
    std::vector<std::string> out;
    for (std::string_view list : lists) {
        std::size_t comma = 0;
        while ((comma = list.find(',')) != std::string_view::npos) {
            out.emplace_back(list.substr(0, comma));
            list.remove_prefix(comma + 1);
        }
        out.emplace_back(list);
    }
    for (std::string& one : out) { // a list may be written with spaces
        one.erase(0, one.find_first_not_of(' '));
        one.erase(one.find_last_not_of(' ') + 1);
    }
    const auto refuse = [&out](auto which, std::string_view what) {
        throw CLI::ValidationError(
            "--masters",
            fmt::format("address {} of {} {}", which - out.begin() + 1, out.size(), what));
    };
    if (const auto empty = std::find(out.begin(), out.end(), ""); empty != out.end()) {
        refuse(empty, "is empty; write redis://host:6379, separated by commas");
    }
    // A password with a comma was cut into pieces, of which an error would show some.
    const auto cut = std::ranges::find_if(out, [](const std::string& one) {
        return one.find('@') != std::string::npos && one.find("://") == std::string::npos;
    });
    if (out.size() > 1 && cut != out.end()) {
        refuse(cut, "has no redis://; if a password has a comma, write %2C in place of it");
    }
    return out;
}

void add_masters(CLI::App& app, settings& into) {
    app.add_option_function<std::vector<std::string>>(
           "--masters",
           [&into](const std::vector<std::string>& lists) { into.masters = addresses_of(lists); },
           "URLs of the masters (redis://, rediss:// or unix://), separated by commas or repeated")
        ->allow_extra_args(false)
        ->type_name("URL,...")
        ->group("The quorum");
    app.add_option("--prefix", into.prefix, "Prefix of every key, before the resource")
        ->capture_default_str()
        ->group("The quorum");
    app.add_option("--protocol", into.protocol, "Protocol; plain shares locks with other libraries")
        ->check(one_of({"guarded", "plain"}))
        ->type_name("guarded|plain")
        ->capture_default_str()
        ->group("The quorum");
    app.add_flag(
           "--no-quarantine",
           into.no_quarantine,
           "Let masters vote without a quarantine; unsafe unless they are new")
        ->group("The quorum");
}

void add_times(CLI::App& app, settings& into) {
    const auto add = [&](const std::string& name, milliseconds& value, const std::string& what) {
        add_duration(app, name, value, what)->group("Times");
    };
    add("--max-ttl", into.max_ttl, "Longest ttl of this process; default: that of the quorum");
    add("--master-timeout",
        into.master_timeout,
        "Time without a reply after which a master is ignored");
    add("--connect-timeout", into.connect_timeout, "Time to resolve, connect and shake hands");
    add("--clock-drift-margin", into.clock_drift_margin, "Largest clock step to allow for");
    add("--clock-offset-bound", into.clock_offset_bound, "Maximum clock offset between masters");
    app.add_option(
           "--clock-drift-factor", into.clock_drift_factor, "Maximum difference in clock rates")
        ->check(number_between(0, 0.5))
        ->type_name("SHARE")
        ->capture_default_str()
        ->group("Times");
}

void add_credentials(CLI::App& app, settings& into) {
    const auto add = [&](const std::string& name, std::string& value, const std::string& what) {
        return app.add_option(name, value, what)->group("Credentials and TLS");
    };
    add("--username", into.username, "User name for masters whose URL has none");
    add("--password-file", into.password_file, "File with the password in its first line")
        ->type_name("FILE");
    // On a command line it would be visible to all users; `resolve` refuses it there.
    app.add_option("--password", into.password)->group(hidden)->expected(0, 1);
    add("--tls-ca-file", into.tls.ca_file, "Trusted certificate authorities; default: the system's")
        ->type_name("FILE");
    add("--tls-certificate-file", into.tls.certificate_file, "Client certificate")
        ->type_name("FILE");
    add("--tls-private-key-file",
        into.tls.private_key_file,
        "Private key of the client certificate")
        ->type_name("FILE");
    add("--tls-server-name", into.tls.server_name, "Name to verify; default: the host of the URL")
        ->type_name("NAME");
    app.add_flag("--tls-insecure", into.tls_insecure, "Do not verify certificates; unsafe")
        ->group("Credentials and TLS");
}

} // namespace

void add_common(CLI::App& app, settings& into) {
    add_masters(app, into);
    add_times(app, into);
    add_credentials(app, into);
}

} // namespace cli
