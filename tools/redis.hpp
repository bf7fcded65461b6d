// One connection for one command at a time: for operators; no lock needs it.

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

/// The reply of a server.
struct reply {
    enum class kind { text, number, list, nothing, error };
    kind what = kind::nothing;
    std::string text; ///< also of an error
    std::int64_t number = 0;
    std::vector<reply> items;

    bool failed() const noexcept { return what == kind::error; }
};

/// The server cannot be reached, does not reply, or does not speak RESP.
class connection_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Connects as the library does: the same URLs, credentials, TLS and times.
class redis {
public:
    /// Connects and logs in. Throws `connection_error`.
    redis(const redlock::endpoint& where, const redlock::config& how);
    ~redis();
    redis(redis&&) noexcept;
    redis& operator=(redis&&) noexcept;

    /// An error of the server is a reply; everything else throws `connection_error`.
    reply ask(const std::vector<std::string_view>& words);

    /// Time until the server's certificate expires; empty without TLS.
    std::optional<std::chrono::hours> certificate_left();

private:
    class wire;
    std::unique_ptr<wire> wire_;
};

/// Calls it with 0 to `masters` - 1, each on a thread of its own, so that several silent masters
/// cost the time of one.
void all_at_once(std::size_t masters, const std::function<void(std::size_t)>& ask);

} // namespace cli
