// The queries of callers in flight: sends their commands, and reports their results (query.hpp).

#pragma once

#include "engine_callbacks.hpp"
#include "essentials.hpp"
#include "query.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlock::core {

class queries : essentials {
public:
    explicit queries(const essentials& with) noexcept : essentials(with) {}

    /// Asks every connected master for the owner of a lock.
    void ask(std::uint64_t cookie, std::string_view resource, time_point now);
    /// The reply to one of the commands; null if the connection broke before.
    void answered(const arrival& at, const reply* answer);
    /// The time of a query is up: reports what is known.
    void due(handle name);
    /// Reports what is known to all callers.
    void end_all();

private:
    void end(query& asked);

    pool<query> queries_;
};

} // namespace redlock::core
