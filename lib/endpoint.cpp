#include <redlock/config.hpp>

#include <boost/url/error_types.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <stdexcept>

namespace redlock::inline REDLOCK_ABI {

namespace urls = boost::urls;

namespace {

// For messages: the URL may hold a password.
std::string without_password(std::string_view url) {
    const std::size_t at = url.rfind('@');
    const std::size_t scheme = url.find("://");
    if (at == std::string_view::npos || scheme == std::string_view::npos || at < scheme) {
        return at == std::string_view::npos ? std::string(url)
                                            : "...@" + std::string(url.substr(at + 1));
    }
    return std::string(url.substr(0, scheme + 3)) + "...@" + std::string(url.substr(at + 1));
}

[[noreturn]] void refuse(std::string_view url, const std::string& why) {
    throw std::invalid_argument(
        fmt::format("redlock: master '{}': {}", without_password(url), why));
}

std::optional<int> number(std::string_view text, int max) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > max) {
        return std::nullopt;
    }
    return value;
}

constexpr int database_max = 65'535;

int database_of(std::string_view url, std::string_view text) {
    const std::optional<int> value = number(text, database_max);
    if (!value) {
        refuse(url, fmt::format("database '{}' is not a number from 0 to {}", text, database_max));
    }
    return *value;
}

} // namespace

endpoint::endpoint(std::string_view url) {
    const auto parsed = urls::parse_uri({url.data(), url.size()});
    if (!parsed) {
        refuse(
            url,
            "not a URL; expected redis://host:port/database, rediss://host:port/database or "
            "unix:///path?db=database");
    }
    const urls::url_view view = *parsed;
    const std::string_view scheme(view.scheme().data(), view.scheme().size());
    if (scheme == "redis") {
        transport = redlock::transport::tcp;
    } else if (scheme == "rediss") {
        transport = redlock::transport::tls;
    } else if (scheme == "unix") {
        transport = redlock::transport::unix_socket;
    } else {
        refuse(url, fmt::format("scheme '{}' is not redis, rediss or unix", scheme));
    }
    if (view.has_fragment()) {
        refuse(url, "a fragment ('#...') has no meaning here; write '#' in a password as %23");
    }
    if (view.has_password()) {
        username = view.user();
        password = view.password();
    } else if (view.has_userinfo()) {
        refuse(url, "a user without a password; write user:password@ or :password@");
    }

    const bool is_unix = transport == redlock::transport::unix_socket;
    for (const auto& param : view.params()) {
        if (!is_unix || param.key != "db") {
            refuse(
                url,
                fmt::format(
                    "unknown option '{}'; {}",
                    param.key,
                    is_unix ? "the only one is db" : "the database goes into the path"));
        }
        database = database_of(url, param.value);
    }
    if (is_unix) {
        path = view.path();
        if (!view.encoded_host().empty() || view.has_port()) {
            refuse(url, "a Unix socket has no host; write three slashes: unix:///path");
        }
        if (path.size() < 2) {
            refuse(url, "the path of the socket is missing");
        }
        return;
    }
    host = view.host_type() == urls::host_type::ipv6 ? std::string(view.host_address())
                                                     : std::string(view.host());
    if (host.empty()) {
        refuse(url, "the host is missing");
    }
    if (view.has_port()) {
        const std::string_view digits(view.port().data(), view.port().size());
        const std::optional<int> value = number(digits, 65'535);
        if (!value || *value == 0) {
            refuse(url, fmt::format("port '{}' is not a number from 1 to 65535", digits));
        }
        port = static_cast<std::uint16_t>(*value);
    }
    const std::string path_text = view.path();
    if (path_text.size() > 1) {
        database = database_of(url, std::string_view(path_text).substr(1));
    }
}

std::string to_string(const endpoint& where) {
    const std::string database = where.database == 0 ? "" : fmt::format("/{}", where.database);
    if (where.transport == transport::unix_socket) {
        return where.path + (where.database == 0 ? "" : fmt::format("?db={}", where.database));
    }
    const bool ipv6 = where.host.find(':') != std::string::npos;
    return fmt::format(
        "{}{}{}:{}{}", ipv6 ? "[" : "", where.host, ipv6 ? "]" : "", where.port, database);
}

} // namespace redlock::inline REDLOCK_ABI
