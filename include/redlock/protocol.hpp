// The protocol used with the masters.

#pragma once

#include <redlock/names.hpp>

#include <cstdint>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

/// Protocol used with the masters. Both use the same keys, so clients of one exclude clients of the
/// other. Both require EVAL: a master that refuses scripts does not vote.
enum class protocol : std::uint8_t {
    /// Counts only votes of masters that are known to have lost nothing. Each master keeps a memory
    /// record: when it last lost its data (restart, FLUSHALL, replaced data). Until every lease
    /// that it may have lost has expired, no client counts its vote. Supports fencing tokens.
    guarded,
    /// Uses `SET key token NX PX ttl`, compare-and-delete and compare-and-extend, as other Redlock
    /// clients do. Use it to share locks with such clients.
    plain,
};

template <>
inline constexpr std::string_view detail::names<protocol> = "guarded plain";

}} // namespace redlock::REDLOCK_ABI
