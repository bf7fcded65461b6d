// A queue that grows but never gives its memory back in small pieces: one array, used round and
// round.

#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace redlock::core {

template <typename T>
class ring {
public:
    bool empty() const noexcept { return size_ == 0; }
    std::size_t size() const noexcept { return size_; }

    const T& front() const noexcept {
        assert(size_ > 0);
        return places_[first_];
    }

    void pop_front() noexcept {
        assert(size_ > 0);
        first_ = (first_ + 1) & (places_.size() - 1);
        --size_;
    }

    void push_back(const T& value) {
        if (size_ == places_.size()) {
            grow();
        }
        places_[(first_ + size_) & (places_.size() - 1)] = value;
        ++size_;
    }

private:
    void grow() {
        std::vector<T> wider(places_.empty() ? 16 : 2 * places_.size()); // a power of two
        for (std::size_t i = 0; i < size_; ++i) {
            wider[i] = places_[(first_ + i) & (places_.size() - 1)];
        }
        places_ = std::move(wider);
        first_ = 0;
    }

    std::vector<T> places_;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
};

} // namespace redlock::core
