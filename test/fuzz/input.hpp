// The fuzzer's bytes, taken piece by piece. At their end there are zeros and empty strings.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fuzz {

class input {
public:
    input(const std::uint8_t* data, std::size_t size)
        : bytes_(reinterpret_cast<const char*>(data), size) {}

    bool empty() const noexcept { return bytes_.empty(); }

    std::uint8_t byte() noexcept {
        const std::string_view one = text(1);
        return one.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(one.front());
    }
    bool flag() noexcept { return (byte() & 1U) != 0; }
    std::size_t below(std::size_t limit) noexcept { return byte() % limit; }
    std::size_t word() noexcept {
        const std::size_t high = byte();
        return 256 * high + byte();
    }
    std::string_view text(std::size_t size) noexcept {
        const std::string_view taken = bytes_.substr(0, size);
        bytes_.remove_prefix(taken.size());
        return taken;
    }
    std::string_view rest() noexcept { return text(bytes_.size()); }

private:
    std::string_view bytes_;
};

} // namespace fuzz
