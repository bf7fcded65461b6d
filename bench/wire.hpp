// The small part of Redis' protocol that the benchmark implements itself: pre-formatted commands, a
// scanner that finds where a reply ends, and a blocking connection for everything that is not
// measured.
#pragma once

#include "load.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

// Owns a file descriptor.
class descriptor {
public:
    descriptor() noexcept = default;
    explicit descriptor(int fd) noexcept : fd_(fd) {}
    descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    descriptor& operator=(descriptor&& other) noexcept;
    ~descriptor();

    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }

private:
    int fd_ = -1;
};

// A connected blocking TCP socket with TCP_NODELAY, logged in. Throws std::runtime_error.
descriptor connect_to(const address& master);

std::string format_command(const std::vector<std::string_view>& words);

// The first reply in `bytes`. `size` counts all its bytes, `head` is its first line without the
// line end, `body` the content of a bulk string. Empty if the reply is not complete. Throws
// std::runtime_error on an array or on invalid bytes: no command here has such a reply.
struct reply_view {
    std::size_t size = 0;
    std::string_view head;
    std::string_view body;
};
std::optional<reply_view> scan_reply(std::string_view bytes);

// One command at a time; for set-up and checks only.
class blocking_connection {
public:
    explicit blocking_connection(const address& master, std::chrono::milliseconds timeout);

    // The text of the reply: a bulk string's content, else its first line with the type byte.
    // Throws std::runtime_error if there is none in time or it is an error.
    std::string command(const std::vector<std::string_view>& words);

private:
    address master_;
    descriptor socket_;
};

// Value of `field:` in the text of INFO; empty if it is missing.
std::string info_field(const std::string& info, std::string_view field);

// Returns how often all masters together have executed these commands, including from scripts.
std::uint64_t
count_calls(const std::vector<address>& masters, const std::vector<std::string_view>& commands);

server_usage read_usage(const std::vector<address>& masters);
server_usage operator-(const server_usage& after, const server_usage& before);

// How many of the lock keys of `resources` exist, summed over the masters.
std::uint64_t
count_lock_keys(const std::vector<address>& masters, const std::vector<std::string>& resources);

} // namespace bench
