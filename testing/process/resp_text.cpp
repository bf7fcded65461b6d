// hiredis' blocking interface, wrapped so that nothing leaks on any path. It works with the 0.14
// and the 1.x interface; types that only the latter has are shown by their text.
#include "resp_text.hpp"

#include "stream_socket.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <hiredis/hiredis.h>

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {
namespace {

timeval to_timeval(std::chrono::milliseconds duration) {
    timeval result{};
    result.tv_sec = duration.count() / 1'000;
    result.tv_usec = duration.count() % 1'000 * 1'000;
    return result;
}

// hiredis would open a socket that child processes inherit.
redisContext* connect_to(
    const sockaddr* address, std::size_t size, const timeval& limit, const std::string& where) {
    const int made = ::socket(address->sa_family, stream_socket, 0);
    ::setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (::connect(made, address, static_cast<socklen_t>(size)) != 0) {
        const int error = errno;
        ::close(made);
        throw std::runtime_error("connect to " + where + ": " + std::strerror(error));
    }
    return redisConnectFd(made);
}

} // namespace

std::string resp_text(const redisReply& reply) {
    switch (reply.type) {
    case REDIS_REPLY_INTEGER:
        return std::to_string(reply.integer);
    case REDIS_REPLY_NIL:
        return "(nil)";
    case REDIS_REPLY_ERROR:
        return "(error) " + std::string(reply.str, reply.len);
    case REDIS_REPLY_ARRAY: {
        std::string lines;
        for (std::size_t i = 0; i < reply.elements; ++i) {
            lines += (i == 0 ? "" : "\n") + resp_text(*reply.element[i]);
        }
        return reply.elements == 0 ? "(empty array)" : lines;
    }
    default:
        return reply.str != nullptr ? std::string(reply.str, reply.len) : std::string();
    }
}

void resp_client::closer::operator()(redisContext* context) const noexcept {
    redisFree(context);
}

void resp_client::closer::operator()(redisReply* reply) const noexcept {
    freeReplyObject(reply);
}

resp_client::resp_client(
    const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout) {
    const std::string where = host + ":" + std::to_string(port);
    const boost::asio::ip::tcp::endpoint address(boost::asio::ip::make_address(host), port);
    context_.reset(connect_to(address.data(), address.size(), to_timeval(timeout), where));
    require_open(where);
    if (redisSetTimeout(context_.get(), to_timeval(timeout)) != REDIS_OK) {
        throw std::runtime_error("cannot set the timeout of " + where);
    }
}

resp_client::resp_client(const std::filesystem::path& socket) {
    const boost::asio::local::stream_protocol::endpoint address(socket.string());
    context_.reset(connect_to(address.data(), address.size(), {}, socket.string()));
    require_open(socket.string());
}

void resp_client::require_open(const std::string& where) const {
    if (!context_) {
        throw std::runtime_error("out of memory while connecting to " + where);
    }
    if (context_->err != 0) {
        throw std::runtime_error("connect to " + where + ": " + context_->errstr);
    }
}

resp_client::reply_ptr resp_client::ask(const std::vector<std::string>& args) {
    std::vector<const char*> words;
    std::vector<std::size_t> lengths;
    for (const std::string& arg : args) {
        words.push_back(arg.data());
        lengths.push_back(arg.size());
    }
    void* raw = redisCommandArgv(
        context_.get(), static_cast<int>(args.size()), words.data(), lengths.data());
    reply_ptr reply(static_cast<redisReply*>(raw));
    if (!reply) {
        throw std::runtime_error(
            "no answer to " + (args.empty() ? "" : args.front()) + ": " + context_->errstr);
    }
    return reply;
}

std::string resp_client::command(const std::vector<std::string>& args) {
    return resp_text(*ask(args));
}

std::vector<std::string> resp_client::list(const std::vector<std::string>& args) {
    const reply_ptr reply = ask(args);
    if (reply->type != REDIS_REPLY_ARRAY) {
        throw std::runtime_error("not an array: " + resp_text(*reply));
    }
    std::vector<std::string> elements;
    for (std::size_t i = 0; i < reply->elements; ++i) {
        elements.push_back(resp_text(*reply->element[i]));
    }
    return elements;
}

}}}} // namespace redlock::REDLOCK_ABI::testing::process
