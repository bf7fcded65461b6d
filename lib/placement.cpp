#include <redlock/placement.hpp>

namespace redlock::inline REDLOCK_ABI {

namespace {

constexpr std::uint64_t fnv_basis = 0xcbf29ce484222325;
constexpr std::uint64_t fnv_prime = 0x100000001b3;

std::uint64_t fnv1a(std::uint64_t state, std::string_view bytes) noexcept {
    for (const char one : bytes) {
        state = (state ^ static_cast<unsigned char>(one)) * fnv_prime;
    }
    return state;
}

// FNV alone carries no bit downwards: of two names that differ in their last byte only, the larger
// weight would nearly always be the same one's.
std::uint64_t mixed(std::uint64_t state) noexcept {
    state += 0x9e3779b97f4a7c15;
    state = (state ^ (state >> 30U)) * 0xbf58476d1ce4e5b9;
    state = (state ^ (state >> 27U)) * 0x94d049bb133111eb;
    return state ^ (state >> 31U);
}

} // namespace

std::uint64_t placement_weight(std::string_view quorum, std::string_view resource) noexcept {
    using namespace std::string_view_literals;
    return mixed(fnv1a(fnv1a(fnv1a(fnv_basis, quorum), "\0"sv), resource));
}

std::size_t place(std::span<const std::string> quorums, std::string_view resource) noexcept {
    std::size_t best = 0;
    std::uint64_t most = placement_weight(quorums[0], resource);
    for (std::size_t i = 1; i < quorums.size(); ++i) {
        const std::uint64_t weight = placement_weight(quorums[i], resource);
        if (weight > most || (weight == most && quorums[i] < quorums[best])) {
            best = i;
            most = weight;
        }
    }
    return best;
}

} // namespace redlock::inline REDLOCK_ABI
