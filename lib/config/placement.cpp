#include "core/base/hash.hpp"

#include <redlock/placement.hpp>

namespace redlock { inline namespace REDLOCK_ABI {

namespace {

std::uint64_t weight_of(std::string_view quorum, std::string_view resource) noexcept {
    using namespace std::string_view_literals;
    const auto hash = core::hash_of(resource, core::hash_of("\0"sv, core::hash_of(quorum)));
    return core::mixed(hash + 0x9e3779b97f4a7c15U); // as splitmix64 draws from that state
}

} // namespace

std::size_t place(std::span<const std::string> quorums, std::string_view resource) noexcept {
    std::size_t best = 0;
    std::uint64_t most = weight_of(quorums[0], resource);
    for (std::size_t i = 1; i < quorums.size(); ++i) {
        const std::uint64_t weight = weight_of(quorums[i], resource);
        if (weight > most || (weight == most && quorums[i] < quorums[best])) {
            best = i;
            most = weight;
        }
    }
    return best;
}

}} // namespace redlock::REDLOCK_ABI
