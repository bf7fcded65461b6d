// A blocking client that inspects a master and injects faults. Replies are text in a format similar
// to that of redis-cli, which is easy to compare.
#pragma once

#include <redlock/version.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

struct redisContext;
struct redisReply;

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {

// Formats a reply: integers in decimal, strings unchanged, nil as "(nil)", errors as "(error)
// text", and one line for each element of an array (nested arrays flattened) or "(empty array)".
std::string resp_text(const redisReply& reply);

// One connection. All functions throw std::runtime_error if there is no reply; an error reply is a
// reply.
class resp_client {
public:
    resp_client(
        const std::string& host,
        std::uint16_t port,
        std::chrono::milliseconds timeout = std::chrono::seconds(5));
    explicit resp_client(const std::filesystem::path& socket);

    std::string command(const std::vector<std::string>& args);

    // Returns the elements of an array reply. Throws if the reply is not an array.
    std::vector<std::string> list(const std::vector<std::string>& args);

private:
    struct closer {
        void operator()(redisContext* context) const noexcept;
        void operator()(redisReply* reply) const noexcept;
    };
    using reply_ptr = std::unique_ptr<redisReply, closer>;

    void require_open(const std::string& where) const;
    reply_ptr ask(const std::vector<std::string>& args);

    std::unique_ptr<redisContext, closer> context_;
};

}}}} // namespace redlock::REDLOCK_ABI::testing::process
