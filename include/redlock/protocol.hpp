// What is said to the masters.

#pragma once

#include <redlock/version.hpp>

#include <cstdint>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

/// Both take the same keys, so clients of the one and of the other exclude each other.
enum class protocol : std::uint8_t {
    /// Scripts. Each master keeps a record of when it lost its memory (restart, FLUSHALL, replaced
    /// data) and refuses by itself, whoever asks, until no forgotten lease can be left; a command
    /// that arrives too late does nothing; fencing tokens can be had. Needs EVAL.
    guarded,
    /// `SET key token NX PX ttl`, compare-and-delete, compare-and-extend: what other Redlock
    /// clients speak. For sharing locks with such clients, and for masters that allow no scripts
    /// but have native commands (Redis 8.4, Valkey 9); others can then not release, and the ttl
    /// ends a lock.
    plain,
};

/// The enumerator's name as written above. The text lives for ever.
std::string_view to_string(protocol) noexcept;

}} // namespace redlock::REDLOCK_ABI
