// What the copy of lib/core that scripts/mutants makes is made of: each place that a mutant changes
// asks here whether that mutant is on. One is on for the whole life of a process, named by
// REDLOCK_MUTANT; without that, none. With REDLOCK_MUTANT_TRACE=FILE none is on, and the file gets
// the numbers of all that were reached.
//
// Operators are wrapped from the middle: `a < b` becomes `a < less(1, 2) < b`, so that no operand
// has to be found or repeated, and precedence stays what it was.

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mutants {

using number = std::uint32_t;

inline constexpr number none = 0;
inline constexpr number dropped = 1; // stands where a mutant did not compile
inline constexpr number tracing = ~number{0};

/// The numbers that were reached: a hash table that threads may fill at once.
inline std::array<std::atomic<number>, 1U << 16U> reached{};

inline void write_reached() {
    if (std::FILE* const out = std::fopen(std::getenv("REDLOCK_MUTANT_TRACE"), "w")) {
        for (const auto& one : reached) {
            if (one != none) {
                std::fprintf(out, "%08x\n", static_cast<unsigned>(one.load()));
            }
        }
        std::fclose(out);
    }
}

[[gnu::cold, gnu::noinline]] inline bool note(number which) noexcept {
    for (std::size_t at = which % reached.size();; at = (at + 1) % reached.size()) {
        number seen = none;
        if (reached[at].compare_exchange_strong(seen, which) || seen == which) {
            return false;
        }
    }
}

inline number from_environment() {
    if (std::getenv("REDLOCK_MUTANT_TRACE") != nullptr) {
        std::atexit(write_reached);
        return tracing;
    }
    const char* const wanted = std::getenv("REDLOCK_MUTANT");
    return wanted == nullptr ? none : static_cast<number>(std::strtoul(wanted, nullptr, 16));
}

// Before the tables that depend on it, wherever those are. (Only an object of a class has a
// priority.)
struct selection {
    number which = from_environment();
};
[[gnu::init_priority(101)]] inline const selection chosen;

/// Whether this mutant is on.
inline bool live(number which) noexcept {
    return which == chosen.which || (chosen.which == tracing && note(which));
}
/// The same for what the compiler may evaluate as well: there none is.
constexpr bool on(number which) noexcept {
    return !std::is_constant_evaluated() && live(which);
}

/// A script that was executed, by its digest.
inline void note_script(std::string_view sha1) noexcept {
    if (chosen.which == tracing) {
        note(
            static_cast<number>(std::strtoul(std::string(sha1.substr(0, 8)).c_str(), nullptr, 16)));
    }
}

/// A mutant that would not compile here, as the types do not allow it. That is noted when the
/// process starts, whether or not it is ever reached.
template <number which>
struct impossible {
    static inline const bool noted = chosen.which == tracing && note(~which);
};
template <number which>
constexpr void cannot() noexcept {
    if (!std::is_constant_evaluated()) {
        static_cast<void>(&impossible<which>::noted);
    }
}

constexpr bool flip(number which, bool condition) noexcept {
    return condition != on(which);
}

/// \name Constants, off by one
/// \{
template <typename T>
constexpr T off(number up, number down, T value) noexcept {
    return on(up) ? static_cast<T>(value + T(1)) : on(down) ? static_cast<T>(value - T(1)) : value;
}
/// For `{.member = 1}`, where a number that is not known to the compiler would be narrowed.
template <typename T>
struct fitting {
    T value;
    template <std::integral Wanted>
    constexpr operator Wanted() const noexcept { // NOLINT
        return static_cast<Wanted>(value);
    }
};
template <typename T>
constexpr fitting<T> fitting_off(number up, number down, T value) noexcept {
    return {off(up, down, value)};
}
/// \}

/// \name Arguments that may change places: those of one type
/// \{
template <typename A, typename B>
struct place {
    using type = A;
    static constexpr bool may_change = std::is_same_v<A, B>;
};
template <typename A, typename B>
    requires(
        !std::is_same_v<A, B> && std::is_same_v<std::remove_cvref_t<A>, std::remove_cvref_t<B>>)
struct place<A, B> {
    static constexpr bool lvalues = std::is_lvalue_reference_v<A> && std::is_lvalue_reference_v<B>;
    using type = std::conditional_t<lvalues, const std::remove_cvref_t<A>&, std::remove_cvref_t<A>>;
    static constexpr bool may_change = true;
};
template <number which, typename A, typename B>
constexpr typename place<A, B>::type either(A&& first, B&& second) {
    if constexpr (place<A, B>::may_change) {
        if (on(which)) {
            return static_cast<typename place<A, B>::type>(std::forward<B>(second));
        }
    } else {
        cannot<which>();
    }
    return static_cast<typename place<A, B>::type>(std::forward<A>(first));
}
/// \}

/// \name std::min and std::max, one for the other
/// \{
template <number which, typename T>
constexpr const T& least(const T& a, const T& b) {
    return on(which) ? std::max<T>(a, b) : std::min<T>(a, b);
}
template <number which, typename T>
constexpr const T& most(const T& a, const T& b) {
    return on(which) ? std::min<T>(a, b) : std::max<T>(a, b);
}
template <number which, typename T>
constexpr T least(std::initializer_list<T> all) {
    return on(which) ? std::max<T>(all) : std::min<T>(all);
}
template <number which, typename T>
constexpr T most(std::initializer_list<T> all) {
    return on(which) ? std::min<T>(all) : std::max<T>(all);
}
/// \}

/// \name Comparisons: `boundary` moves the limit, `opposite` negates
/// \{
#define MUTANTS_COMPARISON(NAME, OP, BOUNDARY, OPPOSITE)                                           \
    struct NAME {                                                                                  \
        number boundary;                                                                           \
        number opposite;                                                                           \
        constexpr NAME(number b, number o) noexcept : boundary(b), opposite(o) {}                  \
    };                                                                                             \
    template <typename L>                                                                          \
    struct NAME##_of {                                                                             \
        L&& left;                                                                                  \
        NAME which;                                                                                \
        template <typename R>                                                                      \
        constexpr bool operator OP(R&& right) && {                                                 \
            if (on(which.boundary)) {                                                              \
                return static_cast<bool>(std::forward<L>(left) BOUNDARY std::forward<R>(right));   \
            }                                                                                      \
            if (on(which.opposite)) {                                                              \
                return static_cast<bool>(std::forward<L>(left) OPPOSITE std::forward<R>(right));   \
            }                                                                                      \
            return static_cast<bool>(std::forward<L>(left) OP std::forward<R>(right));             \
        }                                                                                          \
    };                                                                                             \
    template <typename L>                                                                          \
    constexpr NAME##_of<L> operator OP(L&& left, NAME which) noexcept {                            \
        return {std::forward<L>(left), which};                                                     \
    }

MUTANTS_COMPARISON(less, <, <=, >=)
MUTANTS_COMPARISON(less_equal, <=, <, >)
MUTANTS_COMPARISON(greater, >, >=, <=)
MUTANTS_COMPARISON(greater_equal, >=, >, <)
MUTANTS_COMPARISON(equal, ==, !=, !=)
MUTANTS_COMPARISON(differ, !=, ==, ==)
#undef MUTANTS_COMPARISON
/// \}

/// \name Sums and differences, where the type of both is one
/// \{
#define MUTANTS_ARITHMETIC(NAME, OP, INSTEAD)                                                      \
    template <number which>                                                                        \
    struct NAME {};                                                                                \
    template <number which, typename L>                                                            \
    struct NAME##_of {                                                                             \
        L&& left;                                                                                  \
        template <typename R>                                                                      \
        constexpr auto operator OP(R&& right) && -> decltype(std::forward<L>(left)                 \
                                                                 OP std::forward<R>(right)) {      \
            using result = decltype(std::forward<L>(left) OP std::forward<R>(right));              \
            if constexpr (requires {                                                               \
                              {                                                                    \
                                  std::forward<L>(left) INSTEAD std::forward<R>(right)             \
                                  } -> std::same_as<result>;                                       \
                          }) {                                                                     \
                if (on(which)) {                                                                   \
                    return std::forward<L>(left) INSTEAD std::forward<R>(right);                   \
                }                                                                                  \
            } else {                                                                               \
                cannot<which>();                                                                   \
            }                                                                                      \
            return std::forward<L>(left) OP std::forward<R>(right);                                \
        }                                                                                          \
    };                                                                                             \
    template <number which, typename L>                                                            \
    constexpr NAME##_of<which, L> operator OP(L&& left, NAME<which>) noexcept {                    \
        return {std::forward<L>(left)};                                                            \
    }

MUTANTS_ARITHMETIC(plus, +, -)
MUTANTS_ARITHMETIC(minus, -, +)
#undef MUTANTS_ARITHMETIC

// These bind from the right: `a += add<1>() += b`.
#define MUTANTS_CHANGE(NAME, OP, INSTEAD)                                                          \
    template <number which, typename R>                                                            \
    struct NAME##_of {                                                                             \
        R&& right;                                                                                 \
    };                                                                                             \
    template <number which>                                                                        \
    struct NAME {                                                                                  \
        template <typename R>                                                                      \
        constexpr NAME##_of<which, R> operator OP(R&& right) && noexcept {                         \
            return {std::forward<R>(right)};                                                       \
        }                                                                                          \
    };                                                                                             \
    template <typename L, number which, typename R>                                                \
    constexpr L& operator OP(L& left, NAME##_of<which, R>&& by) {                                  \
        if constexpr (requires { left INSTEAD std::forward<R>(by.right); }) {                      \
            if (on(which)) {                                                                       \
                left INSTEAD std::forward<R>(by.right);                                            \
                return left;                                                                       \
            }                                                                                      \
        } else {                                                                                   \
            cannot<which>();                                                                       \
        }                                                                                          \
        left OP std::forward<R>(by.right);                                                         \
        return left;                                                                               \
    }

MUTANTS_CHANGE(add, +=, -=)
MUTANTS_CHANGE(subtract, -=, +=)
#undef MUTANTS_CHANGE
/// \}

} // namespace mutants
