// PUBLISH on one socket, the message on another.
#include "push_time.hpp"

#include "wire.hpp"

#include <fmt/format.h>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>

namespace bench {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto limit = 2s;
constexpr std::string_view text = "free";

class push_pair {
public:
    explicit push_pair(const address& master)
        : publisher_(connect_to(master)),
          subscriber_(connect_to(master)) {
        const timeval patience{limit.count(), 0};
        for (const auto* socket : {&publisher_, &subscriber_}) {
            ::setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        }
        send(subscriber_, format_command({"SUBSCRIBE", channel_}));
        receive(
            subscriber_,
            fmt::format("*3\r\n$9\r\nsubscribe\r\n${}\r\n{}\r\n:1\r\n", channel_.size(), channel_));
    }

    std::uint32_t measure() {
        const auto started = clock::now();
        send(publisher_, publish_);
        receive(subscriber_, message_);
        const std::chrono::nanoseconds took = clock::now() - started;
        receive(publisher_, ":1\r\n");
        return static_cast<std::uint32_t>(took.count());
    }

private:
    static void send(const descriptor& to, std::string_view bytes) {
        const auto n = ::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n != static_cast<ssize_t>(bytes.size())) {
            throw std::runtime_error("push: the socket does not take a command");
        }
    }

    static void receive(const descriptor& from, std::string_view expected) {
        std::array<char, 256> bytes;
        const auto n = ::recv(from.get(), bytes.data(), expected.size(), MSG_WAITALL);
        if (n < 0 || std::string_view(bytes.data(), static_cast<std::size_t>(n)) != expected) {
            throw std::runtime_error(fmt::format(
                "push: {} in place of '{}'",
                n < 0 ? std::strerror(errno) : "an unexpected answer",
                expected));
        }
    }

    // There is no other subscriber.
    std::string channel_ = fmt::format("bench-push-{}", ::getpid());
    descriptor publisher_;
    descriptor subscriber_;
    std::string publish_ = format_command({"PUBLISH", channel_, text});
    std::string message_ = format_command({"message", channel_, text});
};

} // namespace

std::vector<std::uint32_t> push_times(const std::vector<address>& masters, std::size_t samples) {
    std::vector<push_pair> pairs;
    for (const auto& master : masters) {
        pairs.emplace_back(master);
    }
    std::vector<std::uint32_t> taken;
    for (std::size_t i = 0; i < samples; ++i) {
        taken.push_back(pairs[i % pairs.size()].measure());
    }
    return taken;
}

} // namespace bench
