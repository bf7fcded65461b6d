#include "value_checks.hpp"

#include <redlock/config.hpp>

#include <boost/url/error_types.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace urls = boost::urls;

namespace {

using detail::name_letters;

// For messages: as little of a URL as identifies it. Any part that might be a password is left out,
// in a well-formed URL and in a mistyped one.
std::string without_secrets(std::string_view url) {
    if (const std::size_t mark = url.find("://"); url.rfind("://") != mark) { // several in one
        const std::string_view scheme = url.substr(0, mark);
        const bool ours = scheme == "redis" || scheme == "rediss" || scheme == "unix";
        return ours ? std::string(scheme) + "://..." : "...";
    }
    const std::string_view visible = url.substr(0, url.find_first_of("?#"));
    const std::size_t scheme = visible.substr(0, url.find('@')).find("://");
    const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
    if (url.find('@') != std::string_view::npos) {
        return scheme == std::string_view::npos ? "...@..."
                                                : std::string(visible.substr(0, begin)) + "...@...";
    }
    const std::size_t end = std::min(visible.find('/', begin), visible.size());
    const std::string_view authority = visible.substr(begin, end - begin);
    // The first ':'. A well-formed address has at most one; an IPv6 address is in brackets.
    const std::size_t address = authority.starts_with('[') ? authority.find(']') : 0;
    const std::size_t in_authority =
        address == std::string_view::npos ? address : authority.find(':', address);
    if (in_authority == std::string_view::npos) {
        return std::string(visible);
    }
    const std::size_t colon = begin + in_authority;
    const std::string_view port = visible.substr(colon + 1, end - colon - 1);
    const bool digits = port.find_first_not_of("0123456789") == std::string_view::npos;
    return digits
               ? std::string(visible)
               : std::string(visible.substr(0, colon)) + ":..." + std::string(visible.substr(end));
}

// Cuts a text that is too long for a message.
std::string shown(std::string_view text, std::size_t longest = 64) {
    return text.size() <= longest ? std::string(text)
                                  : std::string(text.substr(0, longest)) + "...";
}

[[noreturn]] void refuse(std::string_view url, std::string_view why) {
    constexpr std::size_t longest = 255;
    throw std::invalid_argument(
        fmt::format("redlock: master '{}': {}", shown(without_secrets(url), longest), why));
}

// Whether a text that is not a URL has a name with a character that is not allowed. If an '@'
// follows, the text before may be a password instead.
bool has_invalid_name(std::string_view url) {
    constexpr std::string_view option = "name=";
    const std::size_t query = url.find('?');
    const std::size_t begin = query == std::string_view::npos ? query : url.find(option, query + 1);
    if (begin == std::string_view::npos || (url[begin - 1] != '?' && url[begin - 1] != '&')
        || url.find('@', query) != std::string_view::npos) {
        return false;
    }
    const std::string_view rest = url.substr(begin + option.size());
    const std::string_view name = rest.substr(0, rest.find_first_of("&#"));
    return name.find_first_not_of(name_letters) != std::string_view::npos;
}

// What follows "://".
std::string_view without_scheme(std::string_view url) {
    const std::size_t mark = url.find("://");
    return mark == std::string_view::npos ? std::string_view() : url.substr(mark + 3);
}

// Whether a password with '/', '?' or '@' was probably meant.
bool has_at_after_host(std::string_view url) {
    const std::string_view rest = without_scheme(url);
    const std::size_t first = rest.find_first_of("/?@");
    return first != std::string_view::npos && rest.find('@', first + 1) != std::string_view::npos;
}

// Whether a character is there that no URL has as it is.
bool has_forbidden_character(std::string_view url) {
    return std::ranges::any_of(url, [](unsigned char each) { return each <= ' ' || each >= 0x7f; });
}

std::string_view authority_of(std::string_view url) {
    const std::string_view rest = without_scheme(url);
    return rest.substr(0, rest.find_first_of("/?"));
}

// "host:port", without user and password.
std::string_view address_of(std::string_view url) {
    const std::string_view authority = authority_of(url);
    return authority.substr(authority.rfind('@') + 1);
}

bool has_bad_port(std::string_view address) {
    const std::size_t colon = address.rfind(':');
    const std::string_view port =
        colon == std::string_view::npos ? std::string_view() : address.substr(colon + 1);
    return port.find(']') == std::string_view::npos
           && port.find_first_not_of("0123456789") != std::string_view::npos;
}

bool has_many_colons(std::string_view address) {
    return address.rfind(']') == std::string_view::npos && address.find(':') != address.rfind(':');
}

// A database or a port.
int number_of(std::string_view url, const char* what, std::string_view text, int least) {
    constexpr int most = 65'535;
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
        refuse(
            url,
            fmt::format("{} '{}' is not a number from {} to {}", what, shown(text), least, most));
    }
    return value;
}

} // namespace

endpoint endpoint::parse(std::string_view url) {
    endpoint out;
    const auto refuse_if = [url](bool wrong, std::string_view why) {
        if (wrong) {
            refuse(url, why);
        }
    };
    // In a password it is %3A%2F%2F.
    refuse_if(url.find("://") != url.rfind("://"), "two URLs in one; list each master by itself");
    const auto parsed = urls::parse_uri({url.data(), url.size()});
    const bool is_url = parsed && parsed->has_authority();
    const urls::url_view view = is_url ? *parsed : urls::url_view();
    const std::string_view scheme(view.scheme().data(), view.scheme().size());
    const bool is_unix = scheme == "unix";
    out.tls = scheme == "rediss";
    if (is_url && !is_unix && !out.tls && scheme != "redis") {
        refuse(url, fmt::format("scheme '{}' is not redis, rediss or unix", shown(scheme)));
    }
    refuse_if(
        view.has_fragment(),
        "a fragment ('#...') has no meaning here; write '#' in a password as %23");
    refuse_if(
        !is_url && has_invalid_name(url), // without the value, which may be part of a password
        "the name has a character that is not allowed; write 1 to 64 letters, digits, '-', '_' and "
        "'.'");
    refuse_if(
        has_at_after_host(url),
        "an '@' too many, or after the host; in a user or password write '/' as %2F, '?' as %3F, "
        "'@' as %40");
    refuse_if(
        !is_url && has_forbidden_character(url),
        "a space, a letter with an accent or the like; write it percent-encoded (a space is %20)");
    const std::string_view address = address_of(url);
    refuse_if(
        has_many_colons(address),
        "more than one ':' in the address; write an IPv6 address as [address]:port");
    // Some versions of Boost.URL stop at a bad port.
    const bool stopped = is_url && view.encoded_authority().size() != authority_of(url).size();
    refuse_if(stopped || has_bad_port(address), "the address is malformed; expected host:port");
    refuse_if(
        !is_url,
        "not a URL; expected redis://host:6379/0, rediss://host:6379/0 or unix:///path?db=0");
    if (view.has_password()) {
        out.username = view.user();
        out.password = view.password();
        refuse_if(
            out.username.find('\0') != std::string::npos, "the user has a NUL character (%00)");
    } else if (view.has_userinfo()) {
        refuse(url, "a user without a password; write user:password or :password before the '@'");
    }

    bool has_database = false;
    for (const auto& param : view.params()) {
        if (param.key == "name") {
            refuse_if(param.value.empty(), "the name is empty");
            refuse_if(!out.name.empty(), "more than one name");
            out.name = param.value;
        } else if (is_unix && param.key == "db") {
            refuse_if(std::exchange(has_database, true), "more than one database");
            out.database = number_of(url, "database", std::string(param.value), 0);
        } else {
            refuse(
                url,
                fmt::format(
                    "unknown option '{}'; {}",
                    shown(param.key),
                    is_unix ? "allowed: db, name"
                            : "allowed: name; the database goes into the path"));
        }
    }
    if (is_unix) {
        out.path = view.path();
        refuse_if(
            !view.encoded_host().empty() || view.has_port(),
            "a Unix socket has no host; write three slashes: unix:///path");
        refuse_if(out.path.size() < 2, "the path of the socket is missing");
        // The system would read a part of it.
        refuse_if(
            out.path.find('\0') != std::string::npos,
            "the path of the socket has a NUL character (%00)");
        return out;
    }
    out.host = view.host_type() == urls::host_type::ipv6 ? std::string(view.host_address())
                                                         : std::string(view.host());
    refuse_if(out.host.empty(), "the host is missing");
    refuse_if(
        view.host_type() == urls::host_type::name
            && out.host.find_first_not_of(name_letters) != std::string::npos,
        "the host has a character that is not allowed in names");
    if (view.has_port()) {
        const std::string_view digits(view.port().data(), view.port().size());
        out.port = static_cast<std::uint16_t>(number_of(url, "port", digits, 1));
    }
    if (const std::string in_path = view.path(); in_path.size() > 1) {
        out.database = number_of(url, "database", in_path.substr(1), 0);
    }
    return out;
}

std::string to_string(const endpoint& where) {
    const std::string database = where.database == 0 ? "" : fmt::format("/{}", where.database);
    if (!where.path.empty()) {
        return where.path + (where.database == 0 ? "" : fmt::format("?db={}", where.database));
    }
    const bool ipv6 = where.host.find(':') != std::string::npos;
    return fmt::format(
        "{}{}{}:{}{}", ipv6 ? "[" : "", where.host, ipv6 ? "]" : "", where.port, database);
}

}} // namespace redlock::REDLOCK_ABI
