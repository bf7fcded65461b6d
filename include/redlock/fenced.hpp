// The other half of a fencing token: what refuses it when it is stale. Helpers for a resource that
// lives in Redis or in this process; how to do it in SQL is in docs/fencing.md.

#pragma once

#include <redlock/error.hpp>

#include <boost/system/system_error.hpp>

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

/// The largest fencing token: what a double, and so a script in Redis, still counts exactly. The
/// smallest is 1; 0 is no token but what a forgotten one looks like, and is refused everywhere.
inline constexpr std::uint64_t fencing_token_max = (std::uint64_t{1} << 53U) - 1;

/// A holder came too late: the resource has seen the token of a later owner. What the late holder
/// should do is stop, and not try again with the same token. `code()` is `errc::stale_token`,
/// `what()` a sentence: "stale fencing token 17: the resource has seen 23".
class stale_token_error : public boost::system::system_error {
public:
    /// For a resource that does not tell what it has seen (an `UPDATE` that found no row).
    explicit stale_token_error(std::uint64_t token);
    /// \param token the one that was refused
    /// \param highest the one that the resource has seen
    stale_token_error(std::uint64_t token, std::uint64_t highest);

    /// The token that was refused.
    std::uint64_t token() const noexcept { return token_; }
    /// The largest that the resource has seen; empty if it does not tell.
    std::optional<std::uint64_t> highest() const noexcept { return highest_; }
    /// A sentence with both numbers, for people.
    const char* what() const noexcept override { return text_->c_str(); }

private:
    stale_token_error(std::uint64_t token, std::optional<std::uint64_t> highest, std::string text);

    std::uint64_t token_;
    std::optional<std::uint64_t> highest_;
    // Shared: the copy of an exception must not throw.
    std::shared_ptr<const std::string> text_;
};

/// Remembers the largest token seen and refuses smaller ones.
///
/// It decides about tokens, it does not hold anybody up: between `admit` and the write that follows
/// it another thread may admit a later owner. Where writes may overlap use `fenced`, which does
/// both under one mutex. It forgets with the process: pass what was stored to the constructor, or
/// after a restart the first token is believed, whatever it is.
///
/// Thread-safe; no allocation but for the exception, no lock.
class fence_guard {
public:
    /// \param highest the largest token seen in an earlier life, 0 if none. Throws
    ///   `std::invalid_argument` above `fencing_token_max`.
    explicit fence_guard(std::uint64_t highest = 0);
    fence_guard(const fence_guard&) = delete;
    fence_guard& operator=(const fence_guard&) = delete;

    /// Admits a token that is not smaller than the largest seen, and remembers it. An equal one is
    /// the same holder once more.
    /// \return no error; `errc::stale_token`; or `errc::invalid_argument` for 0 and for more than
    /// `fencing_token_max`, of which nothing is remembered
    [[nodiscard]] error_code admit(std::uint64_t token) noexcept;

    /// The same, but throws `stale_token_error`, or `boost::system::system_error` with
    /// `errc::invalid_argument`.
    void require(std::uint64_t token);

    /// The largest token admitted; 0 before the first.
    std::uint64_t highest() const noexcept { return highest_.load(); }

private:
    error_code admit(std::uint64_t token, std::uint64_t& seen) noexcept;

    std::atomic<std::uint64_t> highest_;
};

/// A value that can only be written with a token that is not stale. The check and the write are one
/// step: no later owner comes between them. Thread-safe, with a mutex: writes and reads should be
/// short, and must not call this object again.
template <std::movable T>
class fenced {
public:
    /// \param value the first value
    /// \param highest the largest token it was written with in an earlier life, 0 if none. Throws
    ///   `std::invalid_argument` above `fencing_token_max`.
    explicit fenced(T value = T(), std::uint64_t highest = 0)
        : value_(std::move(value)),
          guard_(highest) {}

    /// Calls `change(T&)` and returns what it returns, which must not refer into the value. Throws
    /// `stale_token_error`, or what `fence_guard::require` throws else, and has then not called
    /// `change`. What `change` throws comes through; the token has then been seen, and the value is
    /// as `change` left it.
    template <std::invocable<T&> Change>
    std::invoke_result_t<Change, T&> write(std::uint64_t token, Change&& change) {
        static_assert(
            !std::is_reference_v<std::invoke_result_t<Change, T&>>,
            "a reference into the value would go around the fence");
        const std::lock_guard exclusive(mutex_);
        guard_.require(token);
        return std::invoke(std::forward<Change>(change), value_);
    }

    /// Calls `look(const T&)` and returns what it returns. Needs no token, and promises nothing
    /// about the next moment.
    template <std::invocable<const T&> Look>
    std::invoke_result_t<Look, const T&> read(Look&& look) const {
        static_assert(
            !std::is_reference_v<std::invoke_result_t<Look, const T&>>,
            "a reference into the value would go around the mutex");
        const std::lock_guard exclusive(mutex_);
        return std::invoke(std::forward<Look>(look), value_);
    }

    /// A copy of the value.
    T get() const requires std::copy_constructible<T> {
        const std::lock_guard exclusive(mutex_);
        return value_;
    }

    /// The largest token it was written with; 0 before the first.
    std::uint64_t highest() const noexcept { return guard_.highest(); }

private:
    mutable std::mutex mutex_;
    T value_;
    fence_guard guard_;
};

// --- Redis --------------------------------------------------------------------------------------

/// The key in which a resource in Redis remembers the largest token it has seen: the token in
/// decimal, without an expiry. It protects every key that is written by a script which checks it,
/// so keys that one lock guards should share one. It is not the counter of the lock: that one is on
/// the masters, this one is where the data is.
struct fence_key {
    std::string name; ///< of the key, any bytes but none

    /// A fence for one key, in the same slot of a cluster: `{account:7}:highest-token` for
    /// `account:7`, and `{user:1}:cart:highest-token` for `{user:1}:cart`. Throws
    /// `std::invalid_argument` when there is none: for an empty key, and for one that has a `}` but
    /// no hash tag. Name the fence yourself then.
    static fence_key beside(std::string_view key);
};

/// The answer of a fenced script, by whatever client it came: its first two integers.
struct fenced_reply {
    std::int64_t accepted = 0; ///< 1 written, 0 refused
    std::int64_t highest = 0;  ///< the largest token that the resource has seen by now

    /// \param token the one that the script was called with
    /// \return no error, `errc::stale_token`, or `boost::system::errc::protocol_error` when no
    ///   fenced script can have answered so. Thread-safe.
    [[nodiscard]] error_code check(std::uint64_t token) const noexcept;

    /// The same, but throws `stale_token_error`, or `boost::system::system_error`.
    void require(std::uint64_t token) const;
};

/// The beginning of a fenced script of your own: put your text behind it. Call the whole with the
/// fence as `KEYS[1]` and the token as `ARGV[1]`; your keys and arguments follow them. Your part is
/// reached only with a token that is not stale, which is then remembered; end it with
/// `return {1, tonumber(ARGV[1])}`, and whatever else you like behind these two.
///
/// - stale token: answers `{0, highest}`, nothing is changed
/// - no fence yet: any token is accepted, and is the first
/// - not a whole number from 1 to `fencing_token_max`, or none: an error that begins with `FENCE`,
///   nothing is changed
/// - a fence that holds something else: an error, `FENCE` or `WRONGTYPE`, nothing is changed
///
/// Needs Redis 2.6; the keys must be in one slot of a cluster.
extern const std::string_view fence_check;

/// `SET key value [PX ttl]` that refuses a stale token: one script, for any client.
/// \code
/// const redlock::fenced_set save("account:7");
/// const auto command = save.evalsha(*lock.fencing_token(), "balance 12"); // or eval()
/// // ... send it; the reply is an array of two integers ...
/// redlock::fenced_reply{.accepted = first, .highest = second}.require(*lock.fencing_token());
/// \endcode
/// As SET does, it replaces a value of another type, and takes the expiry from a key when no ttl is
/// given. For tokens and fences that are none see `fence_check`; a ttl that is not a whole number
/// of milliseconds from 1 on is an error that begins with `FENCE`, too. Should the SET itself fail
/// (no memory), the token is remembered all the same: it was a good one.
///
/// Thread-safe as far as it is const.
class fenced_set {
public:
    /// `KEYS`: fence, key. `ARGV`: token, value, and maybe a ttl in ms. Answers `{1, token}` or
    /// `{0, highest}`.
    static const std::string_view script;
    /// The SHA-1 of `script` in hexadecimal, for EVALSHA.
    static const std::string_view sha1;

    /// For one key with a fence of its own, `fence_key::beside(key)`.
    explicit fenced_set(std::string key);
    /// For one of several keys behind one fence, all in one slot of a cluster. Throws
    /// `std::invalid_argument` when both have the same name.
    fenced_set(std::string key, fence_key fence);

    /// The command with the script's text: `EVAL script 2 fence key token value [ttl]`.
    /// \param token from `lock::fencing_token()`
    /// \param value any bytes
    /// \param ttl the value's life; 0: no expiry Throws `std::invalid_argument` for a token that is
    ///   none and for a negative ttl.
    std::vector<std::string> eval(
        std::uint64_t token,
        std::string_view value,
        std::chrono::milliseconds ttl = std::chrono::milliseconds::zero()) const;

    /// The same by its digest. The server answers NOSCRIPT until it has seen `eval()` or
    /// `SCRIPT LOAD` once; then send `eval()`.
    std::vector<std::string> evalsha(
        std::uint64_t token,
        std::string_view value,
        std::chrono::milliseconds ttl = std::chrono::milliseconds::zero()) const;

    const std::string& key() const noexcept { return key_; }          ///< of the value
    const std::string& fence() const noexcept { return fence_.name; } ///< of the largest token

private:
    std::vector<std::string> command(
        const char* name,
        std::string_view script_or_digest,
        std::uint64_t token,
        std::string_view value,
        std::chrono::milliseconds ttl) const;

    std::string key_;
    fence_key fence_;
};

}} // namespace redlock::REDLOCK_ABI
