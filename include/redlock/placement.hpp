// Selects one of several quorums for a resource. All processes, in any programming language, must
// use the same rule.

#pragma once

#include <redlock/version.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

/// Returns the index of the quorum that is responsible for `resource`: the one with the largest
/// weight. Between equal weights, the quorum with the smaller name is chosen, compared byte by
/// byte. The order of the list does not matter. A new quorum takes its share from all others, and
/// nothing else moves. The share of a removed quorum is distributed over all others. Thread-safe.
///
/// The weight is the 64-bit FNV-1a of the quorum's name, a zero byte and the resource's name,
/// finished by the splitmix64 mixer:
/// \code
/// h = 0xcbf29ce484222325
/// for each byte b:  h = (h xor b) * 0x100000001b3            (modulo 2^64, as all that follows)
/// h = h + 0x9e3779b97f4a7c15
/// h = (h xor h >> 30) * 0xbf58476d1ce4e5b9
/// h = (h xor h >> 27) * 0x94d049bb133111eb
/// h = h xor h >> 31
/// \endcode
/// The rule is part of the protocol and never changes. docs/primitives.md has test vectors.
/// \param quorums the names of all quorums: at least one, without duplicates
/// \param resource the name of the resource
std::size_t place(std::span<const std::string> quorums, std::string_view resource) noexcept;

}} // namespace redlock::REDLOCK_ABI
