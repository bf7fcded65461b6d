// The URL of a master: whatever is given is an endpoint or a sentence, and neither tells the
// password.

#include "input.hpp"
#include "require.hpp"

#include <redlock/config.hpp>

#include <boost/asio/ip/address_v6.hpp>

#include <optional>
#include <stdexcept>
#include <string>

using fuzz::require;
using redlock::endpoint;

namespace {

// Long and odd enough not to be there by accident.
constexpr std::string_view secret = "s3cr3tPw";

bool mentions(std::string_view text, std::string_view what) {
    return text.find(what) != std::string_view::npos;
}

// Only the exception that is documented; any other ends the program.
std::optional<endpoint> parse(std::string_view url, std::string& refusal) {
    try {
        return endpoint(url);
    } catch (const std::invalid_argument& refused) {
        refusal = refused.what();
        return std::nullopt;
    }
}

bool made_of(std::string_view text, std::string_view characters) {
    return text.find_first_not_of(characters) == std::string_view::npos;
}

// What a name, an address or a path is made of, as long as nothing in it is encoded.
bool plain(const endpoint& one) {
    constexpr std::string_view name =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    return made_of(one.host, name) && made_of(one.path, std::string(name) + "/");
}

bool ipv6(const endpoint& one) {
    boost::system::error_code failed;
    boost::asio::ip::make_address_v6(one.host, failed);
    return !failed;
}

void check(const endpoint& accepted) {
    require(accepted.database >= 0 && accepted.database <= 65'535, "the database is in its range");
    const bool is_unix = !accepted.path.empty();
    require(accepted.host.empty() == is_unix, "a host, or a socket");
    require(accepted.path.empty() != is_unix, "a socket, or a host");
    if (is_unix) {
        require(accepted.path.front() == '/' && accepted.path.size() > 1, "a path is absolute");
    } else {
        require(accepted.port != 0, "the port is in its range");
    }

    // What is said of it in words is a URL without its scheme and without user and password.
    endpoint anonymous = accepted;
    anonymous.username.clear();
    anonymous.password.clear();
    const std::string words = to_string(accepted);
    require(words == to_string(anonymous), "user and password are not in the words");
    if (plain(accepted) || ipv6(accepted)) {
        const std::string_view scheme = is_unix        ? "unix://"
                                        : accepted.tls ? "rediss://"
                                                       : "redis://";
        std::string refusal;
        const auto again = parse(std::string(scheme) + words, refusal);
        require(again == anonymous, "the words make the same endpoint");
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::input in(data, size);
    const std::size_t before = in.byte();
    const std::string head(in.text(before));
    const std::string tail(in.rest());
    if (mentions(head, secret) || mentions(tail, secret)) {
        return 0;
    }

    std::string refusal;
    if (const auto accepted = parse(head + tail, refusal)) {
        check(*accepted);
    } else {
        require(refusal.starts_with("redlock: master '"), "the sentence says what it is about");
    }

    // The same with a password at that place.
    refusal.clear();
    if (const auto accepted = parse(head + ":" + std::string(secret) + "@" + tail, refusal)) {
        check(*accepted);
        require(!mentions(to_string(*accepted), secret), "the password is not in the words");
    }
    require(!mentions(refusal, secret), "the password is not in the sentence");
    return 0;
}
