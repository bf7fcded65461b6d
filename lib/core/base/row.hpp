// A row of values, one for each master: in less room than a vector.

#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace redlock::core {

template <typename T>
class row {
public:
    row() noexcept = default;
    row(const row& other) { *this = other; }
    row(row&& other) noexcept { swap(other); }
    row& operator=(const row& other) {
        if (this != &other) {
            resize(other.size_);
            std::copy(other.begin(), other.end(), begin());
        }
        return *this;
    }
    row& operator=(row&& other) noexcept {
        swap(other);
        return *this;
    }
    ~row() = default;

    /// Replaces it by `size` new values.
    void assign(std::size_t size) {
        if (resize(size)) {
            std::fill(begin(), end(), T{});
        }
    }
    void clear() noexcept {
        values_.reset();
        size_ = 0;
    }

    bool empty() const noexcept { return size_ == 0; }
    std::size_t size() const noexcept { return size_; }
    T* begin() noexcept { return values_.get(); }
    T* end() noexcept { return begin() + size_; }
    const T* begin() const noexcept { return values_.get(); }
    const T* end() const noexcept { return begin() + size_; }
    T& operator[](std::size_t place) noexcept {
        assert(place < size_);
        return values_[place];
    }
    const T& operator[](std::size_t place) const noexcept {
        assert(place < size_);
        return values_[place];
    }

private:
    // Returns true if the values of before are still there.
    bool resize(std::size_t size) {
        if (size == size_) {
            return true;
        }
        values_ = size == 0 ? nullptr : std::make_unique<T[]>(size);
        size_ = static_cast<std::uint32_t>(size);
        return false;
    }
    void swap(row& other) noexcept {
        std::swap(values_, other.values_);
        std::swap(size_, other.size_);
    }

    std::unique_ptr<T[]> values_;
    std::uint32_t size_ = 0;
};

} // namespace redlock::core
