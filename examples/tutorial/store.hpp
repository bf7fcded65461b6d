// Where the tutorial's reports are stored, from page 3 on: a key in a Redis server.

#pragma once

#include <redlock/config.hpp>
#include <redlock/fenced.hpp>

#include <hiredis/hiredis.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// hiredis here, but any client will do: the library only makes the words of the command.
class store {
public:
    explicit store(const redlock::endpoint& where)
        : context_(redisConnect(where.host.c_str(), where.port), &redisFree) {
        if (!context_ || context_->err != 0) {
            throw std::runtime_error("cannot connect to " + to_string(where));
        }
    }

    /// Throws stale_token_error if an owner with a larger token has written before.
    void save(std::uint64_t token, const std::string& report) {
        const redlock::fenced_set daily("reports/daily");
        const std::vector<std::string> words = daily.eval(token, report);
        std::vector<const char*> texts;
        std::vector<std::size_t> sizes;
        for (const std::string& word : words) {
            texts.push_back(word.data());
            sizes.push_back(word.size());
        }
        const int count = static_cast<int>(words.size());
        const std::unique_ptr<void, decltype(&freeReplyObject)> reply(
            redisCommandArgv(context_.get(), count, texts.data(), sizes.data()), &freeReplyObject);
        const auto* answer = static_cast<const redisReply*>(reply.get());
        if (answer == nullptr || answer->type != REDIS_REPLY_ARRAY || answer->elements != 2) {
            throw std::runtime_error("the report cannot be stored");
        }
        redlock::fenced_reply verdict;
        verdict.accepted = answer->element[0]->integer;
        verdict.highest = answer->element[1]->integer;
        verdict.require(token);
    }

private:
    std::unique_ptr<redisContext, decltype(&redisFree)> context_;
};
