// The subscriptions to the channels of one master. They belong to connections, not to keys:
// therefore they are separate from the server, and end with the process.

#pragma once

#include "answer.hpp"
#include "server.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

class audience {
public:
    using listener = std::uint32_t;

    /// Executes a subscription command. Returns the RESP2 replies, one for each channel, or nothing
    /// if it is a command for the server.
    std::optional<std::vector<answer>> execute(listener who, server::words command);

    /// Returns the listeners of a channel in the order in which they subscribed.
    std::vector<listener> of(std::string_view channel) const;
    /// Returns the number of channels of one listener.
    std::int64_t channels_of(listener who) const;

    void leave(listener who);
    void clear() noexcept { places_.clear(); }

private:
    struct place {
        listener who = 0;
        std::string channel;
    };

    std::vector<place> places_;
};

/// Returns the message that a listener receives.
answer message(std::string_view channel, std::string_view text);

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
