// Storage for objects that are identified by handles: a handle to a freed object finds nothing,
// even if its place is in use again. Objects are recycled with their buffers, so a steady load
// allocates nothing.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace redlock::core {

template <typename T>
struct handle;

/// A handle to an object of a type that only its receiver knows.
struct any_handle {
    std::uint32_t index = 0;
    std::uint32_t generation = 0;

    template <typename T>
    handle<T> to() const noexcept {
        return {index, generation};
    }
};

/// Identifies an object in a pool. A default handle identifies none.
template <typename T>
struct handle {
    std::uint32_t index = 0;
    std::uint32_t generation = 0;

    explicit operator bool() const noexcept { return generation != 0; }
    // NOLINTNEXTLINE(google-explicit-constructor): it loses only its type
    operator any_handle() const noexcept { return {index, generation}; }
    friend bool operator==(handle, handle) = default;
};

/// Requires of `T`: a member `handle<T> self`, and `void reset()`, which prepares it for reuse and
/// may keep buffers. It sets `self`, also of an object that is free: to `nowhere`, with the
/// generation of the next one.
template <typename T>
class pool {
public:
    T& create() {
        if (free_.empty()) {
            if (end_ == blocks_.size() * in_block) {
                blocks_.push_back(std::make_unique<block>());
            }
            at(end_).self = {nowhere, 1};
            free_.push_back(static_cast<std::uint32_t>(end_++));
        }
        T& made = at(free_.back());
        made.self.index = free_.back();
        free_.pop_back();
        return made;
    }

    /// The object, or null if it is gone.
    T* find(handle<T> name) noexcept {
        if (name.index >= end_) {
            return nullptr;
        }
        T& found = at(name.index); // of a free object no handle has the generation yet
        return found.self.generation == name.generation ? &found : nullptr;
    }

    const T* find(handle<T> name) const noexcept { return const_cast<pool*>(this)->find(name); }

    /// Returns the object with this index, or null if the place is free.
    T* find(std::uint32_t index) noexcept {
        T& found = at(index);
        return found.self.index == index ? &found : nullptr;
    }

    void destroy(T& object) {
        free_.push_back(object.self.index);
        object.reset();
        object.self.index = nowhere;
        if (++object.self.generation == 0) {
            object.self.generation = 1; // 0 identifies nothing
        }
    }

    std::size_t size() const noexcept { return end_ - free_.size(); }

    /// Calls `f` with each object. `f` may destroy the one it is given, and may create others.
    template <typename F>
    void for_each(F f) {
        for (std::size_t i = 0; i < end_; ++i) {
            if (at(i).self.index != nowhere) {
                f(at(i));
            }
        }
    }

    /// Calls `f` with the objects in the next `places` places from `from` on, until it returns
    /// false. Returns the place to go on from: `end()` after the last one. `f` may destroy the
    /// object that it is given, and may create others.
    template <typename F>
    std::size_t for_some(std::size_t from, std::size_t places, F f) {
        const std::size_t limit = from + std::min(places, end_ - std::min(from, end_));
        for (; from < limit; ++from) {
            if (at(from).self.index != nowhere && !f(at(from))) {
                break;
            }
        }
        return from;
    }
    std::size_t end() const noexcept { return end_; }

private:
    static constexpr std::uint32_t nowhere = ~std::uint32_t{0};
    static constexpr std::size_t in_block = 16; // one allocation

    using block = std::array<T, in_block>;

    T& at(std::size_t place) noexcept { return (*blocks_[place / in_block])[place % in_block]; }

    std::vector<std::unique_ptr<block>> blocks_; // stable addresses
    std::vector<std::uint32_t> free_;
    std::size_t end_ = 0; // places that have been used
};

} // namespace redlock::core
