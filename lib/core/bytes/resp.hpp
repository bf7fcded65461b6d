// Replies from the bytes of the Redis protocol. The most frequent ones, one line or a few numbers,
// are parsed in place. For the rest the parser is hiredis' reader with reply builders that reuse
// one buffer: a reply costs no allocation.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core {

enum class reply_type : unsigned char { status, error, integer, string, nil, array };

/// One reply, or one element of an array. Valid until the reader is used again.
struct reply {
    reply_type type = reply_type::nil;
    std::int64_t integer = 0;        // of an integer; of an array, the number of elements
    std::string_view text;           // of a status, error or string
    std::span<const reply> elements; // of an array, flattened in order of appearance

    bool is_error() const noexcept { return type == reply_type::error; }
    /// The text of an error, else empty.
    std::string_view error() const noexcept { return is_error() ? text : std::string_view(); }
    bool is_integer() const noexcept { return type == reply_type::integer; }
    bool is_array(std::size_t of) const noexcept {
        return type == reply_type::array && elements.size() == of;
    }
    /// Of each SET: compared by characters, which costs less than a call of memcmp.
    bool is_ok() const noexcept {
        return type == reply_type::status && text.size() == 2 && text[0] == 'O' && text[1] == 'K';
    }
};

/// Splits a stream of bytes into replies.
class reply_reader {
public:
    /// The largest reply that a master may send. The largest one that a lock needs is INFO, some
    /// KiB.
    static constexpr std::size_t reply_bytes_max = std::size_t{256} * 1024;

    /// Accepts replies up to `largest` bytes.
    explicit reply_reader(std::size_t largest = reply_bytes_max);
    ~reply_reader();
    reply_reader(const reply_reader&) = delete;
    reply_reader& operator=(const reply_reader&) = delete;

    /// Adds bytes from the network. The bytes must stay valid until `next` returns null. Returns
    /// false after an error.
    bool feed(std::span<const char> bytes);

    /// Returns the next complete reply, or null: more bytes are needed, or `error()` is not empty.
    const reply* next();

    /// Takes the reply that comes next if it has exactly these bytes. One that came in pieces is
    /// not taken.
    bool take(std::string_view usual) noexcept {
        const bool found = !usual.empty() && fresh_.starts_with(usual);
        fresh_.remove_prefix(found ? usual.size() : 0);
        return found;
    }
    /// Takes the replies "+OK" that come next in a row, at most `most`, and returns their number.
    std::size_t take_ok(std::size_t most) noexcept {
        std::size_t found = 0;
        while (found < most && take("+OK\r\n")) {
            ++found;
        }
        return found;
    }

    /// Why the stream is invalid; empty if it is valid. After an error, only `clear()` helps.
    const std::string& error() const noexcept { return error_; }

    /// Drops all bytes, for a new connection.
    void clear();

private:
    bool give_to_hiredis(std::string_view bytes);
    const reply* next_in_place();
    const reply* next_of_hiredis();

    struct impl;
    const std::size_t largest_;
    std::unique_ptr<impl> impl_;
    std::string_view fresh_; // not passed to hiredis yet
    bool begun_ = false;     // hiredis has a part of a reply, or replies that were not taken
    reply found_;
    std::vector<reply> elements_; // of an array that is parsed in place
    std::string error_;
};

} // namespace redlock::core
