// Checks of fencing tokens at the resource, for a resource in Redis or in this process. For SQL see
// docs/fencing.md.

#pragma once

#include <redlock/error.hpp>

#include <boost/system/system_error.hpp>

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

/// Thrown if a resource has seen the token of a later owner. The holder must stop, and must not
/// retry with the same token. `code()` is `errc::stale_token`. `what()` is a sentence such as
/// "stale fencing token 17: the resource has seen 23".
class stale_token_error : public boost::system::system_error {
public:
    /// Constructs an exception.
    /// \param token the refused token
    /// \param highest the largest token that the resource has seen; empty if it does not report it
    ///   (an `UPDATE` that found no row)
    explicit stale_token_error(
        std::uint64_t token, std::optional<std::uint64_t> highest = std::nullopt);

    /// Returns the refused token.
    std::uint64_t token() const noexcept { return token_; }
    /// Returns the largest token that the resource has seen, or nothing if the resource does not
    /// report it.
    std::optional<std::uint64_t> highest() const noexcept { return highest_; }
    /// Returns a sentence with both tokens, for people.
    const char* what() const noexcept override { return text_->c_str(); }

private:
    std::uint64_t token_;
    std::optional<std::uint64_t> highest_;
    // Shared: copying an exception must not throw.
    std::shared_ptr<const std::string> text_;
};

namespace detail {

/// The largest fencing token: the largest integer that a double, and therefore a Redis script,
/// counts exactly.
inline constexpr std::uint64_t fencing_token_max = (std::uint64_t{1} << 53U) - 1;

/// Returns a mark: the largest token seen, or 0.
/// \throws std::invalid_argument if it is above `fencing_token_max`.
std::uint64_t fence_mark(std::uint64_t highest);

/// Admits a token that is not below the mark, which becomes the token. An equal token belongs to
/// the same holder.
/// \throws stale_token_error if the token is stale.
/// \throws boost::system::system_error with `errc::invalid_argument` if it is invalid.
void admit(std::uint64_t token, std::uint64_t& mark);

} // namespace detail

/// A value that can only be written with a token that is not stale. The check and the write are one
/// step, so that no later owner can come in between. Its memory ends with the process: store
/// `highest()` with the value, or the first token after a restart is accepted, whatever it is.
///
/// A token is an integer from 1 to 2^53 - 1. 0 is what a missing token looks like, and is refused
/// everywhere.
///
/// Thread-safe: uses a mutex. Functions passed to `write` and `read` should be short and must not
/// call this object.
template <std::movable T>
class fenced {
public:
    /// Constructs a value with its fence.
    /// \param value the initial value
    /// \param highest the largest token that it was written with before; 0 if none
    /// \throws std::invalid_argument if `highest` is above 2^53 - 1.
    explicit fenced(T value = T(), std::uint64_t highest = 0)
        : value_(std::move(value)),
          highest_(detail::fence_mark(highest)) {}

    /// Checks `token`, calls `change(T&)` and returns its result, which must not refer into the
    /// value.
    ///
    /// If the token is refused, `change` is not called. An exception of `change` is passed on; in
    /// this case the token has been remembered, and the value is as `change` left it.
    /// \throws stale_token_error if the token is stale.
    /// \throws boost::system::system_error with `errc::invalid_argument` if the token is invalid.
    template <std::invocable<T&> Change>
    std::invoke_result_t<Change, T&> write(std::uint64_t token, Change&& change) {
        static_assert(
            !std::is_reference_v<std::invoke_result_t<Change, T&>>,
            "a reference into the value would go around the fence");
        const std::lock_guard exclusive(mutex_);
        detail::admit(token, highest_);
        return std::invoke(std::forward<Change>(change), value_);
    }

    /// Calls `look(const T&)` and returns its result, which must not refer into the value. Needs no
    /// token. The value may change right afterwards.
    template <std::invocable<const T&> Look>
    std::invoke_result_t<Look, const T&> read(Look&& look) const {
        static_assert(
            !std::is_reference_v<std::invoke_result_t<Look, const T&>>,
            "a reference into the value would go around the mutex");
        const std::lock_guard exclusive(mutex_);
        return std::invoke(std::forward<Look>(look), value_);
    }

    /// Returns a copy of the value.
    T get() const requires std::copy_constructible<T> {
        const std::lock_guard exclusive(mutex_);
        return value_;
    }

    /// Returns the largest token that the value was written with, or 0 before the first.
    std::uint64_t highest() const noexcept {
        const std::lock_guard exclusive(mutex_);
        return highest_;
    }

private:
    mutable std::mutex mutex_;
    T value_;
    std::uint64_t highest_;
};

// --- Redis --------------------------------------------------------------------------------------

/// The reply of a fenced script, independent of the client library: its first two integers.
struct fenced_reply {
    std::int64_t accepted = 0; ///< 1 if it was written, 0 if it was refused
    std::int64_t highest = 0;  ///< the largest token that the resource has seen

    /// Throws unless it was written.
    /// \param token the token that was passed to the script
    /// \throws stale_token_error if the token is stale.
    /// \throws boost::system::system_error with `boost::system::errc::protocol_error` if it cannot
    ///   be the reply of a fenced script.
    void require(std::uint64_t token) const;
};

/// The first part of a custom fenced script: append your own part to it. Call the script with the
/// fence as `KEYS[1]` and the token as `ARGV[1]`, followed by your own keys and arguments. Your
/// part runs only if the token is not stale; the token has been remembered by then. End it with
/// `return {1, tonumber(ARGV[1])}`, optionally with more elements.
///
/// - Stale token: returns `{0, highest}`. Nothing is changed.
/// - No fence yet: accepts any valid token as the first.
/// - No token, or not an integer from 1 to 2^53 - 1: returns an error that begins with
///   `FENCE`. Nothing is changed.
/// - The fence key holds something else: returns an error, `FENCE` or `WRONGTYPE`. Nothing is
///   changed.
///
/// Requires Redis 2.6. In a cluster all keys must be in one slot.
extern const std::string_view fence_check;

/// `SET key value [PX ttl]` as a script that refuses a stale token, for any client library.
/// \code
/// const redlock::fenced_set save("account:7");
/// const auto command = save.evalsha(lock.fencing_token(), "balance 12"); // or eval()
/// // ... send it; the reply is an array of two integers ...
/// redlock::fenced_reply{.accepted = first, .highest = second}.require(lock.fencing_token());
/// \endcode
/// Like SET, it replaces a value of another type, and removes the expiry of the key if no ttl is
/// given.
///
/// The *fence* is the key in which the resource remembers the largest token it has seen: in
/// decimal, without an expiry. It protects every key that is written by a script that checks it, so
/// all keys guarded by one lock should share one fence. It is not the counter of the lock: that one
/// is on the masters, this one is next to the data.
///
/// For invalid tokens and fences see `fence_check`. A ttl that is not a positive integer of
/// milliseconds is an error that begins with `FENCE`. If the SET itself fails (out of memory), the
/// token is remembered nevertheless, because it was valid.
///
/// \par Thread safety
/// Distinct objects: safe. Shared objects: safe, except for assignment and destruction.
class fenced_set {
public:
    /// Constructs the command for one key.
    /// \param key the key of the value
    /// \param fence the key of the fence: any bytes. Several keys may share it; in a cluster all
    ///   must be in one slot. Empty: a fence for this key alone, in the same slot:
    ///   `{account:7}:highest-token` for `account:7`, and `{user:1}:cart:highest-token` for
    ///   `{user:1}:cart`.
    /// \throws std::invalid_argument if key and fence have the same name, or if none can be made of
    ///   the key: it is empty, or has a `}` but no hash tag.
    explicit fenced_set(std::string key, std::string fence = {});

    /// Returns the command with the text of the script:
    /// `EVAL script 2 fence key token value [ttl]`. The reply is `{1, token}` or `{0, highest}`.
    /// \param token the result of `lock::fencing_token()`
    /// \param value any bytes
    /// \param ttl lifetime of the value, up to 36500 days. 0: no expiry.
    /// \throws std::invalid_argument if the token or the ttl is invalid.
    std::vector<std::string> eval(
        std::uint64_t token,
        std::string_view value,
        std::chrono::milliseconds ttl = std::chrono::milliseconds::zero()) const;

    /// Returns the command with the digest of the script:
    /// `EVALSHA sha1 2 fence key token value [ttl]`. The server replies NOSCRIPT until it has
    /// executed `eval()` once; in this case send that. Parameters and
    /// exceptions: as `eval`.
    std::vector<std::string> evalsha(
        std::uint64_t token,
        std::string_view value,
        std::chrono::milliseconds ttl = std::chrono::milliseconds::zero()) const;

    /// Returns the key of the fence.
    const std::string& fence() const noexcept { return fence_; }

private:
    std::vector<std::string> command(
        const char* name,
        std::string_view script_or_digest,
        std::uint64_t token,
        std::string_view value,
        std::chrono::milliseconds ttl) const;

    std::string key_;
    std::string fence_;
};

}} // namespace redlock::REDLOCK_ABI
