// In which order the addresses of one name are tried. An address that swallows the attempt, a black
// hole, costs one attempt: the next attempt begins after it, and once an address has worked, with
// that one.

#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace redlock::net {

template <typename Address>
class address_order {
public:
    /// An attempt at this one of the addresses begins.
    void trying(const std::vector<Address>& addresses, std::size_t which) {
        first_ = addresses[(which + 1) % addresses.size()];
    }
    /// The attempt succeeded.
    void worked(const Address& address) { first_ = address; }

    /// Puts addresses that were just looked up into order.
    void sort(std::vector<Address>& addresses) const {
        const auto at = first_ ? std::ranges::find(addresses, *first_) : addresses.begin();
        if (at != addresses.end()) {
            std::rotate(addresses.begin(), at, addresses.end());
        }
    }

private:
    std::optional<Address> first_;
};

} // namespace redlock::net
