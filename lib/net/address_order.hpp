// The order in which the addresses of a name are tried. If a connect to an address hangs (a black
// hole), the next connect starts with the following address. After a success, it starts with the
// address that worked.

#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace redlock::net {

template <typename Address>
class address_order {
public:
    /// Records a connect to `addresses[which]`.
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
