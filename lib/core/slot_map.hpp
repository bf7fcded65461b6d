// Storage for objects that are identified by handles: a handle to a freed object finds nothing,
// even if its place is in use again. Objects are recycled with their buffers, so a steady load
// allocates nothing.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace redlock::core {

/// Identifies an object in a slot map. A default handle identifies none.
struct handle {
    std::uint32_t index = 0;
    std::uint32_t generation = 0;

    explicit operator bool() const noexcept { return generation != 0; }
    friend bool operator==(handle, handle) = default;
};

/// Requires of `T`: a member `handle self`, and `void reset()`, which prepares it for reuse and may
/// keep buffers.
template <typename T>
class pool {
public:
    T& create() {
        if (free_.empty()) {
            free_.push_back(static_cast<std::uint32_t>(slots_.size()));
            slots_.push_back(std::make_unique<slot>());
        }
        const std::uint32_t index = free_.back();
        free_.pop_back();
        slot& place = *slots_[index];
        place.used = true;
        place.value.self = {index, place.generation};
        ++size_;
        return place.value;
    }

    /// The object, or null if it is gone.
    T* find(handle name) noexcept {
        if (name.index >= slots_.size()) {
            return nullptr;
        }
        slot& place = *slots_[name.index];
        return place.used && place.generation == name.generation ? &place.value : nullptr;
    }

    const T* find(handle name) const noexcept { return const_cast<pool*>(this)->find(name); }

    void destroy(T& object) {
        slot& place = *slots_[object.self.index];
        object.reset();
        place.used = false;
        if (++place.generation == 0) {
            place.generation = 1; // 0 identifies nothing
        }
        free_.push_back(object.self.index);
        --size_;
    }

    std::size_t size() const noexcept { return size_; }

    /// Calls `f` with each object. `f` may destroy the one it is given, and may create others.
    template <typename F>
    void for_each(F f) {
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            if (slots_[i]->used) {
                f(slots_[i]->value);
            }
        }
    }

    /// Calls `f` with the objects in the next `places` places from `from` on, until it returns
    /// false. Returns the place to go on from: `end()` after the last one. `f` may destroy the
    /// object that it is given, and may create others.
    template <typename F>
    std::size_t for_some(std::size_t from, std::size_t places, F f) {
        const std::size_t limit =
            from + std::min(places, slots_.size() - std::min(from, slots_.size()));
        for (; from < limit; ++from) {
            if (slots_[from]->used && !f(slots_[from]->value)) {
                break;
            }
        }
        return from;
    }
    std::size_t end() const noexcept { return slots_.size(); }

private:
    struct slot {
        T value{};
        std::uint32_t generation = 1;
        bool used = false;
    };
    std::vector<std::unique_ptr<slot>> slots_; // stable addresses
    std::vector<std::uint32_t> free_;
    std::size_t size_ = 0;
};

} // namespace redlock::core
