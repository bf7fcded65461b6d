// Signals to servers, and ports that refuse.
#include "disturbance.hpp"

#include <fmt/format.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

std::pair<descriptor, address> refusing_port() {
    descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    if (!socket || ::bind(socket.get(), generic, size) != 0
        || ::getsockname(socket.get(), generic, &size) != 0) {
        throw std::runtime_error(fmt::format("no free port: {}", std::strerror(errno)));
    }
    return {std::move(socket), address{"127.0.0.1", ntohs(name.sin_port)}};
}

} // namespace

std::string fault::name() const {
    switch (kind) {
    case fault_kind::hung:
        return fmt::format("{} hung", masters);
    case fault_kind::refused:
        return fmt::format("{} refused", masters);
    case fault_kind::slow:
        return fmt::format("{} slow", masters);
    case fault_kind::none:
        break;
    }
    return "none";
}

disturbance::disturbance(const plan& asked, fault wanted)
    : own_(*asked.own),
      wanted_(wanted),
      first_(asked.masters.size() - wanted.masters),
      reachable_(asked.masters) {
    for (auto i = first_; wanted.kind == fault_kind::refused && i < reachable_.size(); ++i) {
        auto [socket, at] = refusing_port();
        refusing_.push_back(std::move(socket));
        at.name = reachable_[i].name;
        reachable_[i] = std::move(at);
    }
}

std::size_t disturbance::admitted() const noexcept {
    return wanted_.kind == fault_kind::refused ? first_ : reachable_.size();
}

void disturbance::begin() {
    if (wanted_.kind == fault_kind::hung) {
        stop_all();
    } else if (wanted_.kind == fault_kind::slow) {
        ended_ = false;
        pulse_ = std::thread([this] { pulse(); });
    }
}

void disturbance::end() {
    if (pulse_.joinable()) {
        {
            const std::lock_guard lock(guard_);
            ended_ = true;
        }
        ended_changed_.notify_one();
        pulse_.join();
    }
    if (wanted_.kind == fault_kind::hung) {
        resume_all();
    }
}

void disturbance::stop_all() {
    for (auto i = first_; i < reachable_.size(); ++i) {
        own_.hang(i);
    }
}

void disturbance::resume_all() {
    for (auto i = first_; i < reachable_.size(); ++i) {
        own_.resume(i);
    }
}

void disturbance::pulse() {
    std::unique_lock lock(guard_);
    const auto over = [this] { return ended_; };
    do {
        stop_all();
        ended_changed_.wait_for(lock, slow_stopped, over);
        resume_all();
    } while (!ended_changed_.wait_for(lock, slow_running, over));
}

} // namespace bench
