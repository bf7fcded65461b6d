// A queue in one circular array, which grows and never shrinks.

#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <utility>

namespace redlock::core {

template <typename T>
class ring_buffer {
public:
    bool empty() const noexcept { return size_ == 0; }
    std::size_t size() const noexcept { return size_; }

    const T& front() const noexcept {
        assert(size_ > 0);
        return places_[first_];
    }

    T& front() noexcept {
        assert(size_ > 0);
        return places_[first_];
    }

    void pop_front() noexcept {
        assert(size_ > 0);
        first_ = (first_ + 1) & (room_ - 1);
        --size_;
    }

    void push_back(const T& value) {
        if (size_ == room_) {
            grow();
        }
        places_[(first_ + size_) & (room_ - 1)] = value;
        ++size_;
    }

private:
    void grow() {
        const std::size_t room = room_ == 0 ? 16 : 2 * room_; // a power of two
        auto wider = std::make_unique<T[]>(room);
        for (std::size_t i = 0; i < size_; ++i) {
            wider[i] = places_[(first_ + i) & (room_ - 1)];
        }
        places_ = std::move(wider);
        room_ = room;
        first_ = 0;
    }

    std::unique_ptr<T[]> places_;
    std::size_t room_ = 0;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
};

} // namespace redlock::core
