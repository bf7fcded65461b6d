// One master as the floor sees it: a non-blocking socket, the bytes that leave at the end of the
// turn, and the queue of commands that wait for their reply.
#pragma once

#include "load.hpp"
#include "wire.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

// The loop (`slot`) and step of a command. Even steps acquire, odd steps release.
struct floor_command {
    std::uint32_t slot = 0;
    std::uint32_t step = 0;
};

class floor_connection {
public:
    explicit floor_connection(const address& master);

    int fd() const noexcept { return socket_.get(); }
    // Bytes wait for the socket to take them.
    bool blocked() const noexcept { return sent_ < outgoing_.size(); }
    std::size_t unanswered() const noexcept { return pending_.size(); }

    void queue(std::string_view bytes, floor_command command);
    // Writes what is queued with one call. Keeps what the socket does not accept.
    void flush();
    // Reads once and calls `on_reply(floor_command, reply_view)` for each complete reply.
    template <class Function>
    void receive(Function&& on_reply);

private:
    std::string_view read_once();
    void keep(std::size_t consumed);
    [[noreturn]] void fail(std::string_view what) const;

    address master_;
    descriptor socket_;
    std::string outgoing_;
    std::size_t sent_ = 0;
    std::vector<char> incoming_;
    std::size_t received_ = 0;
    std::deque<floor_command> pending_;
};

template <class Function>
void floor_connection::receive(Function&& on_reply) {
    const std::string_view bytes = read_once();
    std::size_t consumed = 0;
    while (const auto reply = scan_reply(bytes.substr(consumed))) {
        if (pending_.empty()) {
            fail("unsolicited reply");
        }
        const floor_command command = pending_.front();
        pending_.pop_front();
        consumed += reply->size;
        on_reply(command, *reply);
    }
    keep(consumed);
}

} // namespace bench
