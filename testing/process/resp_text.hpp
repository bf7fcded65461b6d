// A blocking client for looking at a master from outside: a test asks it what keys there are and
// injects faults with it. Answers come as text, much as redis-cli prints them, for easy comparison.
#pragma once

#include <redlock/version.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct redisContext;
struct redisReply;

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {

// Integers in decimal, strings as they are, nil as "(nil)", errors as "(error) text", arrays with
// one element a line (nested ones flattened) and "(empty array)" without any.
std::string resp_text(const redisReply& reply);

// One connection. Everything throws std::runtime_error when no answer comes; an error reply is an
// answer.
class resp_client {
public:
    resp_client(
        const std::string& host,
        std::uint16_t port,
        std::chrono::milliseconds timeout = std::chrono::seconds(5));

    std::string command(const std::vector<std::string>& args);

    // The elements of an array answer; throws when the answer is something else.
    std::vector<std::string> list(const std::vector<std::string>& args);

private:
    struct closer {
        void operator()(redisContext* context) const noexcept;
        void operator()(redisReply* reply) const noexcept;
    };
    using reply_ptr = std::unique_ptr<redisReply, closer>;

    reply_ptr ask(const std::vector<std::string>& args);

    std::unique_ptr<redisContext, closer> context_;
};

}}}} // namespace redlock::REDLOCK_ABI::testing::process
