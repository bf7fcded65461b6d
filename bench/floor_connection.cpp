// The socket calls of the floor.
#include "floor_connection.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace bench {
namespace {

constexpr std::size_t incoming_size_max = 64 * 1024;

} // namespace

floor_connection::floor_connection(const address& master)
    : master_(master),
      socket_(connect_to(master)),
      incoming_(incoming_size_max) {
    const int flags = ::fcntl(socket_.get(), F_GETFL);
    if (flags < 0 || ::fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
        fail(std::strerror(errno));
    }
}

void floor_connection::queue(std::string_view bytes, floor_command command) {
    outgoing_.append(bytes);
    pending_.push_back(command);
}

void floor_connection::flush() {
    if (!blocked()) {
        return;
    }
    const auto n =
        ::send(socket_.get(), outgoing_.data() + sent_, outgoing_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        fail(std::strerror(errno));
    }
    sent_ += n > 0 ? static_cast<std::size_t>(n) : 0;
    if (!blocked()) {
        outgoing_.clear();
        sent_ = 0;
    }
}

std::string_view floor_connection::read_once() {
    const auto n =
        ::recv(socket_.get(), incoming_.data() + received_, incoming_.size() - received_, 0);
    if (n == 0) {
        fail("connection closed");
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        fail(std::strerror(errno));
    }
    received_ += n > 0 ? static_cast<std::size_t>(n) : 0;
    return {incoming_.data(), received_};
}

void floor_connection::keep(std::size_t consumed) {
    received_ -= consumed;
    if (received_ == incoming_.size()) {
        fail("a reply that is too large");
    }
    if (received_ > 0 && consumed > 0) {
        std::memmove(incoming_.data(), incoming_.data() + consumed, received_);
    }
}

void floor_connection::fail(std::string_view what) const {
    throw std::runtime_error(fmt::format("floor, master {}: {}", to_string(master_), what));
}

} // namespace bench
