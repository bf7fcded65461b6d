// Which of several quorums has a resource: the rule that all processes, in whatever language,
// share.

#pragma once

#include <redlock/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

/// How much `quorum` wants `resource`: the quorum with the largest weight has it. FNV-1a of 64 bits
/// over the quorum's name, a zero byte and the resource's name, finished by the mixer of
/// splitmix64:
/// \code
/// h = 0xcbf29ce484222325
/// for each byte b:  h = (h xor b) * 0x100000001b3            (modulo 2^64, as all that follows)
/// h = h + 0x9e3779b97f4a7c15
/// h = (h xor h >> 30) * 0xbf58476d1ce4e5b9
/// h = (h xor h >> 27) * 0x94d049bb133111eb
/// h = h xor h >> 31
/// \endcode
/// It is a part of the protocol: it never changes. docs/several_quorums.md has values to test
/// against. Thread-safe.
std::uint64_t placement_weight(std::string_view quorum, std::string_view resource) noexcept;

/// The place in `quorums` of the one that has `resource`: that of the largest weight, and of equal
/// ones that of the smaller name, byte by byte. The order of the list does not matter. A quorum
/// that is added takes its share from all others and nothing else moves; one that is removed gives
/// its own to all others.
/// \param quorums the names of all quorums, at least one, each once Thread-safe.
std::size_t place(std::span<const std::string> quorums, std::string_view resource) noexcept;

}} // namespace redlock::REDLOCK_ABI
