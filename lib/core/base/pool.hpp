// Storage for objects that are identified by handles: a handle to a freed object finds nothing,
// even if its place is in use again. Objects are recycled with their buffers, so a steady load
// allocates nothing.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
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
/// generation of the next one. If `T` has a timer `wake`, it sets its subject.
template <typename T>
class pool {
public:
    T& create() {
        slab& from = slabs_[next_slab()];
        if (from.objects == nullptr) {
            from.objects = std::make_unique<block>();
            for (T& one : *from.objects) {
                one.self = {nowhere, from.generation};
            }
        }
        const auto place = static_cast<std::uint32_t>(std::countr_one(from.used));
        from.used = static_cast<std::uint16_t>(from.used | 1U << place);
        T& made = (*from.objects)[place];
        made.self.index =
            static_cast<std::uint32_t>(&from - slabs_.data()) * std::uint32_t{in_slab} + place;
        if constexpr (requires { made.wake; }) {
            made.wake.subject = made.self.index;
        }
        ++size_;
        return made;
    }

    /// The object, or null if it is gone.
    T* find(handle<T> name) noexcept {
        T* const found = at(name.index); // of a free object no handle has the generation yet
        return found != nullptr && found->self.generation == name.generation ? found : nullptr;
    }

    const T* find(handle<T> name) const noexcept { return const_cast<pool*>(this)->find(name); }

    /// Returns the object with this index, or null if the place is free.
    T* find(std::uint32_t index) noexcept {
        T* const found = at(index);
        return found != nullptr && found->self.index == index ? found : nullptr;
    }

    void destroy(T& object) {
        const std::uint32_t number = object.self.index / in_slab;
        slab& of = slabs_[number];
        of.used = static_cast<std::uint16_t>(of.used & ~(1U << object.self.index % in_slab));
        if (of.used == 0) {
            spare_.push_back(number);
        } else {
            list(number);
        }
        --size_;
        object.reset();
        object.self.index = nowhere;
        if (++object.self.generation == 0) {
            object.self.generation = 1; // 0 identifies nothing
        }
    }

    std::size_t size() const noexcept { return size_; }

    /// Returns the memory of most objects that are not in use, after there were very many. Calls
    /// `forget` with each of them before. What a steady load needs is kept.
    template <typename F>
    void shrink(F forget) {
        for (; spare_.size() > spare_max; spare_.pop_back()) {
            slab& unused = slabs_[spare_.back()];
            for (T& one : *unused.objects) {
                forget(one);
                unused.generation = std::max(unused.generation, one.self.generation);
            }
            unused.objects.reset();
            given_back_.push_back(spare_.back());
        }
    }

    /// Calls `f` with each object. `f` may destroy the one it is given, and may create others.
    template <typename F>
    void for_each(F f) {
        for (std::uint32_t i = 0; i < end(); ++i) {
            if (T* const one = find(i)) {
                f(*one);
            }
        }
    }

    /// Calls `f` with the objects in the next `places` places from `from` on, until it returns
    /// false. Returns the place to go on from: `end()` after the last one. `f` may destroy the
    /// object that it is given, and may create others.
    template <typename F>
    std::size_t for_some(std::size_t from, std::size_t places, F f) {
        const std::size_t limit = from + std::min(places, end() - std::min(from, end()));
        for (; from < limit; ++from) {
            T* const one = find(static_cast<std::uint32_t>(from));
            if (one != nullptr && !f(*one)) {
                break;
            }
        }
        return from;
    }
    std::size_t end() const noexcept { return slabs_.size() * in_slab; }

private:
    static constexpr std::uint32_t nowhere = ~std::uint32_t{0};
    static constexpr std::uint32_t in_slab = 16; // one allocation
    static constexpr std::size_t spare_max = 128;

    using block = std::array<T, in_slab>;

    struct slab {
        std::unique_ptr<block> objects; // stable addresses; null: its memory was returned
        std::uint32_t generation = 1;   // of new objects
        std::uint16_t used = 0;         // one bit each
        bool listed = false;            // in `partial_`
    };

    T* at(std::uint32_t place) noexcept {
        const std::size_t number = place / in_slab;
        return number < slabs_.size() && slabs_[number].objects != nullptr
                   ? &(*slabs_[number].objects)[place % in_slab]
                   : nullptr;
    }
    void list(std::uint32_t number) {
        if (!std::exchange(slabs_[number].listed, true)) {
            partial_.push_back(number);
        }
    }
    // The slab of the next object, with a free place.
    std::uint32_t next_slab() {
        constexpr std::uint16_t all = 0xFFFF;
        for (; !partial_.empty(); partial_.pop_back()) {
            slab& last = slabs_[partial_.back()];
            if (last.used != 0 && last.used != all) {
                return partial_.back();
            }
            last.listed = false;
        }
        if (std::vector<std::uint32_t>& from = spare_.empty() ? given_back_ : spare_;
            !from.empty()) {
            list(from.back());
            from.pop_back();
        } else {
            slabs_.emplace_back();
            list(static_cast<std::uint32_t>(slabs_.size() - 1));
        }
        return partial_.back();
    }

    std::vector<slab> slabs_;
    std::vector<std::uint32_t> partial_;    // some objects in use; others may be listed still
    std::vector<std::uint32_t> spare_;      // none in use
    std::vector<std::uint32_t> given_back_; // and without memory
    std::size_t size_ = 0;
};

} // namespace redlock::core
