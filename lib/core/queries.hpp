// The queries of callers in flight: sends their commands, and reports their results (query.hpp).

#pragma once

#include "engine_callbacks.hpp"
#include "query.hpp"
#include "quorum.hpp"
#include "sender.hpp"
#include "settings.hpp"
#include "slot_map.hpp"
#include "timers.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlock::core {

class queries {
public:
    queries(
        const settings& rules,
        quorum& masters,
        sender& commands,
        timers& due,
        query_reports& reports) noexcept
        : rules_(rules),
          masters_(masters),
          sender_(commands),
          timers_(due),
          reports_(reports) {}

    /// Asks every connected master for the owner of a lock.
    void ask(std::uint64_t cookie, std::string_view resource, time_point now);
    /// The reply to one of the commands.
    void answered(std::size_t master, const sent_command& command, const reply& answer);
    /// The connection broke before the reply.
    void dropped(std::size_t master, const sent_command& command);
    /// The time of a query is up: reports what is known.
    void due(handle name);
    /// Reports what is known to all callers.
    void end_all();

private:
    void end(query& asked);

    const settings& rules_;
    quorum& masters_;
    sender& sender_;
    timers& timers_;
    query_reports& reports_;
    pool<query> queries_;
};

} // namespace redlock::core
