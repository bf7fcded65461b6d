// What a page for Prometheus is made of.

#pragma once

#include <redlock/prometheus.hpp>

#include <span>
#include <string>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// One manager in the output.
struct exported {
    std::string quorum; ///< its label
    metrics counted;
    health now;
    const config& settings;
};

/// As `to_prometheus`.
std::string page_of(std::span<const exported> managers);

}}} // namespace redlock::REDLOCK_ABI::detail
