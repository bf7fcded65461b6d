// The resource that the lock guards: a number in a Redis of its own, protected by a fence, to which
// every holder adds one.
//
// Each holder first opens it with his token, which reads the number and shuts out all smaller
// tokens from then on, and later writes what he read plus one. So a write can only be accepted if
// nobody with a larger token has opened since: with tokens that are good, each accepted write adds
// one, whatever the holders do and however late. An update is lost exactly when accepted writes and
// number differ.
#pragma once

#include "support/process.hpp"

#include <optional>

namespace redlock::soak {

class store {
public:
    /// The server's Unix socket: it can be reached from every network namespace.
    explicit store(const std::filesystem::path& socket) : client_(socket) {}

    /// The number, or nothing if the token is stale.
    std::optional<std::uint64_t> open(std::uint64_t token);

    /// Whether it was written, or the token stale.
    bool write(std::uint64_t token, std::uint64_t number);

    struct totals {
        std::uint64_t number = 0;
        std::uint64_t writes = 0; // accepted
        std::uint64_t lost() const noexcept { return writes > number ? writes - number : 0; }
    };
    totals read();

private:
    std::vector<std::uint64_t> ask(const std::vector<std::string>& words);

    test::resp_client client_;
};

} // namespace redlock::soak
