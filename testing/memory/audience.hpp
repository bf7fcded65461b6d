// Who listens to which channel of one master. The connections know of it, and not the keys: so it
// stands beside the server, and is gone with the process.

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

    /// What Redis answers in RESP2, one for each channel; empty if the command is for the server.
    std::optional<std::vector<answer>> execute(listener who, server::words command);

    /// The listeners of a channel, in the order in which they came.
    std::vector<listener> of(std::string_view channel) const;
    /// How many channels one listens to.
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

/// What a listener is sent.
answer message(std::string_view channel, std::string_view text);

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
