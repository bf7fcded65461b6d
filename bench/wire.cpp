// Blocking helpers and the reply scanner.
#include "wire.hpp"

#include <fmt/format.h>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace bench {
namespace {

template <class Number>
Number parse_number(std::string_view text) {
    Number value{};
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end) {
        throw std::runtime_error(fmt::format("'{}' is not a number", text));
    }
    return value;
}

std::chrono::microseconds parse_seconds(const std::string& text) {
    return std::chrono::microseconds(static_cast<std::int64_t>(std::stod(text) * 1e6));
}

// Sends one command on a blocking socket and waits for its reply.
std::string exchange(
    const descriptor& socket, const address& master, const std::vector<std::string_view>& words) {
    const auto fail = [&](std::string_view why) {
        return std::runtime_error(
            fmt::format("{} to {}: {}", words.front(), to_string(master), why));
    };
    const auto request = format_command(words);
    for (std::size_t sent = 0; sent < request.size();) {
        const auto n =
            ::send(socket.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) {
            throw fail(std::strerror(errno));
        }
        sent += static_cast<std::size_t>(n);
    }
    std::string received;
    for (;;) {
        char chunk[4096];
        const auto n = ::recv(socket.get(), chunk, sizeof chunk, 0);
        if (n <= 0) {
            throw fail(n == 0 ? "connection closed" : std::strerror(errno));
        }
        received.append(chunk, static_cast<std::size_t>(n));
        if (const auto reply = scan_reply(received)) {
            if (reply->head.front() == '-') {
                throw fail(reply->head);
            }
            return std::string(reply->head.front() == '$' ? reply->body : reply->head);
        }
    }
}

void log_in(const descriptor& socket, const address& master) {
    if (master.password.empty()) {
        return;
    }
    std::vector<std::string_view> words{"AUTH", master.password};
    if (!master.username.empty()) {
        words.insert(words.begin() + 1, master.username);
    }
    exchange(socket, master, words);
}

} // namespace

descriptor& descriptor::operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

descriptor::~descriptor() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

descriptor connect_to(const address& master) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const auto port = std::to_string(master.port);
    if (const int code = ::getaddrinfo(master.host.c_str(), port.c_str(), &hints, &found)) {
        throw std::runtime_error(fmt::format("{}: {}", to_string(master), ::gai_strerror(code)));
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
    int error = 0;
    for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
        descriptor socket(::socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (socket && ::connect(socket.get(), entry->ai_addr, entry->ai_addrlen) == 0) {
            const int on = 1;
            ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            log_in(socket, master);
            return socket;
        }
        error = errno;
    }
    throw std::runtime_error(
        fmt::format("connect to {}: {}", to_string(master), std::strerror(error)));
}

std::string format_command(const std::vector<std::string_view>& words) {
    std::string out = fmt::format("*{}\r\n", words.size());
    for (const auto word : words) {
        out += fmt::format("${}\r\n", word.size());
        out += word;
        out += "\r\n";
    }
    return out;
}

std::optional<reply_view> scan_reply(std::string_view bytes) {
    const void* const found =
        bytes.empty() ? nullptr : std::memchr(bytes.data(), '\n', bytes.size());
    if (found == nullptr) {
        return std::nullopt;
    }
    const auto line_end = static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data());
    if (line_end < 2 || bytes[line_end - 1] != '\r') {
        throw std::runtime_error("a reply without a proper line end");
    }
    reply_view reply{line_end + 1, bytes.substr(0, line_end - 1), {}};
    switch (bytes[0]) {
    case '+':
    case '-':
    case ':':
        return reply;
    case '$':
        break;
    default:
        throw std::runtime_error(fmt::format("an unexpected reply: '{}'", reply.head));
    }
    const auto length = parse_number<long long>(reply.head.substr(1));
    if (length < 0) {
        return reply;
    }
    const auto body_size = static_cast<std::size_t>(length);
    if (bytes.size() - reply.size < body_size + 2) {
        return std::nullopt;
    }
    reply.body = bytes.substr(reply.size, body_size);
    reply.size += body_size + 2;
    return reply;
}

blocking_connection::blocking_connection(const address& master, std::chrono::milliseconds timeout)
    : master_(master),
      socket_(connect_to(master)) {
    timeval limit{};
    limit.tv_sec = static_cast<time_t>(timeout.count() / 1'000);
    limit.tv_usec = static_cast<suseconds_t>(timeout.count() % 1'000 * 1'000);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

std::string blocking_connection::command(const std::vector<std::string_view>& words) {
    return exchange(socket_, master_, words);
}

std::string info_field(const std::string& info, std::string_view field) {
    const auto label = fmt::format("\n{}:", field);
    const auto at = info.find(label);
    if (at == std::string::npos) {
        return {};
    }
    const auto from = at + label.size();
    return info.substr(from, info.find_first_of("\r\n", from) - from);
}

std::uint64_t
count_calls(const std::vector<address>& masters, const std::vector<std::string_view>& commands) {
    std::uint64_t count = 0;
    for (const auto& master : masters) {
        blocking_connection connection(master, std::chrono::seconds(2));
        const auto info = connection.command({"INFO", "commandstats"});
        for (const auto name : commands) {
            const auto entry = info_field(info, fmt::format("cmdstat_{}", name));
            const auto from = entry.find('=') + 1;
            count += entry.empty() ? 0
                                   : parse_number<std::uint64_t>(std::string_view(entry).substr(
                                       from, entry.find(',') - from));
        }
    }
    return count;
}

server_usage read_usage(const std::vector<address>& masters) {
    server_usage sum;
    for (const auto& master : masters) {
        blocking_connection connection(master, std::chrono::seconds(2));
        const auto info = connection.command({"INFO"});
        const auto number = [&info](std::string_view field) {
            return parse_number<std::uint64_t>(info_field(info, field));
        };
        sum.commands += number("total_commands_processed");
        sum.bytes_in += number("total_net_input_bytes");
        sum.bytes_out += number("total_net_output_bytes");
        sum.reads += number("total_reads_processed");
        sum.cpu += parse_seconds(info_field(info, "used_cpu_sys"));
        sum.cpu += parse_seconds(info_field(info, "used_cpu_user"));
    }
    return sum;
}

server_usage operator-(const server_usage& after, const server_usage& before) {
    return {
        after.commands - before.commands,
        after.bytes_in - before.bytes_in,
        after.bytes_out - before.bytes_out,
        after.reads - before.reads,
        after.cpu - before.cpu};
}

std::uint64_t
count_lock_keys(const std::vector<address>& masters, const std::vector<std::string>& resources) {
    std::vector<std::string> keys;
    keys.reserve(resources.size());
    for (const auto& resource : resources) {
        keys.push_back(lock_key(resource));
    }
    std::vector<std::string_view> words{"EXISTS"};
    words.insert(words.end(), keys.begin(), keys.end());
    std::uint64_t count = 0;
    for (const auto& master : masters) {
        blocking_connection connection(master, std::chrono::seconds(2));
        const auto answer = connection.command(words);
        count += parse_number<std::uint64_t>(std::string_view(answer).substr(1));
    }
    return count;
}

} // namespace bench
