// The key of a lock with the token of one owner: what the masters store for a claim.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

namespace redlock::core {

/// Key and token in one allocation, shared by the claim and the handle of its holder. Immutable;
/// copies may be used and destroyed by different threads. Converts to the key.
class owned_key {
public:
    static constexpr std::size_t token_size = 40;

    owned_key() noexcept = default;
    /// Requires a token of `token_size` characters. The key is shorter than 4 GiB.
    owned_key(std::string_view key, std::string_view token)
        : block_(::new (::operator new(sizeof(block) + key.size())) block) {
        block_->size = static_cast<std::uint32_t>(key.size());
        token.copy(block_->token.data(), token_size);
        key.copy(text(), key.size());
    }
    owned_key(const owned_key& other) noexcept : block_(other.block_) {
        if (block_ != nullptr) {
            block_->owners.fetch_add(1, std::memory_order_relaxed);
        }
    }
    owned_key(owned_key&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
    owned_key& operator=(owned_key other) noexcept {
        std::swap(block_, other.block_);
        return *this;
    }
    ~owned_key() {
        if (block_ != nullptr && block_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            std::destroy_at(block_);
            ::operator delete(block_);
        }
    }

    // NOLINTNEXTLINE(google-explicit-constructor): the key is what most commands need
    operator std::string_view() const noexcept {
        return block_ == nullptr ? std::string_view() : std::string_view(text(), block_->size);
    }
    std::string_view token() const noexcept {
        return block_ == nullptr ? std::string_view()
                                 : std::string_view(block_->token.data(), token_size);
    }

private:
    struct block { // followed by the key
        std::atomic<std::uint32_t> owners = 1;
        std::uint32_t size = 0;
        std::array<char, token_size> token;
    };

    char* text() const noexcept { return reinterpret_cast<char*>(block_ + 1); }

    block* block_ = nullptr;
};

} // namespace redlock::core
