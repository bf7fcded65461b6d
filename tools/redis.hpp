// One connection that asks one thing at a time: for what no lock needs and an operator does.

#pragma once

#include "text.hpp"

#include <redlock/config.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

/// What a server answered.
struct reply {
    enum class kind { text, number, list, nothing, error };
    kind what = kind::nothing;
    std::string text; ///< also of an error
    std::int64_t number = 0;
    std::vector<reply> items;

    bool failed() const noexcept { return what == kind::error; }
};

/// The server cannot be reached, is silent, or does not speak RESP.
class connection_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// As the library connects: the same URLs, credentials, TLS and times.
class redis {
public:
    /// Connects and logs in. Throws `connection_error`.
    redis(const redlock::endpoint& where, const redlock::config& how);
    ~redis();
    redis(redis&&) noexcept;
    redis& operator=(redis&&) noexcept;

    /// An error of the server is a reply; throws `connection_error` for the rest.
    reply ask(const std::vector<std::string_view>& words);

    /// How long the server's certificate is valid; nothing without TLS.
    std::optional<std::chrono::hours> certificate_left();

private:
    class wire;
    std::unique_ptr<wire> wire_;
};

/// Calls it with 0 to `masters` - 1, each on a thread of its own: however many masters are silent,
/// they are waited for once.
void all_at_once(std::size_t masters, const std::function<void(std::size_t)>& ask);

} // namespace cli
