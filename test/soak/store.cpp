#include "store.hpp"

#include <redlock/fenced.hpp>

#include <hiredis/hiredis.h>

#include <stdexcept>

namespace redlock::soak {
namespace {

constexpr const char* fence = "{soak}:highest-token";
constexpr const char* number_key = "{soak}:number";
constexpr const char* writes_key = "{soak}:writes";

constexpr const char* open_part = R"(
return {1, tonumber(ARGV[1]), tonumber(redis.call('GET', KEYS[2]) or '0')}
)";
constexpr const char* write_part = R"(
redis.call('SET', KEYS[2], ARGV[2])
redis.call('INCR', KEYS[3])
return {1, tonumber(ARGV[1])}
)";
constexpr const char* read_script = R"(
return {tonumber(redis.call('GET', KEYS[1]) or '0'), tonumber(redis.call('GET', KEYS[2]) or '0')}
)";

std::string fenced_script(const char* part) {
    return std::string(fence_check) + part;
}

} // namespace

store::store(const std::filesystem::path& socket) : context_(::redisConnectUnix(socket.c_str())) {
    if (!context_ || context_->err != 0) {
        throw std::runtime_error("the store cannot be reached at " + socket.string());
    }
}

void store::closer::operator()(redisContext* context) const noexcept {
    ::redisFree(context);
}

std::vector<std::uint64_t> store::ask(const std::vector<std::string>& words) {
    struct reply_closer {
        void operator()(void* reply) const noexcept { ::freeReplyObject(reply); }
    };
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) {
        texts.push_back(word.data());
        sizes.push_back(word.size());
    }
    const std::unique_ptr<void, reply_closer> answer(::redisCommandArgv(
        context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data()));
    const auto* const got = static_cast<const redisReply*>(answer.get());
    if (got == nullptr || got->type != REDIS_REPLY_ARRAY || got->elements < 2) {
        throw std::runtime_error(
            "the store said: "
            + std::string(
                got == nullptr        ? context_->errstr
                : got->str != nullptr ? got->str
                                      : "?"));
    }
    std::vector<std::uint64_t> numbers;
    for (std::size_t i = 0; i < got->elements; ++i) {
        numbers.push_back(static_cast<std::uint64_t>(got->element[i]->integer));
    }
    return numbers;
}

std::optional<std::uint64_t> store::open(std::uint64_t token) {
    const auto got =
        ask({"EVAL", fenced_script(open_part), "2", fence, number_key, std::to_string(token)});
    return got[0] == 1 ? std::optional(got.at(2)) : std::nullopt;
}

bool store::write(std::uint64_t token, std::uint64_t number) {
    return ask(
               {"EVAL",
                fenced_script(write_part),
                "3",
                fence,
                number_key,
                writes_key,
                std::to_string(token),
                std::to_string(number)})[0]
           == 1;
}

store::totals store::read() {
    const auto got = ask({"EVAL", read_script, "2", number_key, writes_key});
    return {.number = got[0], .writes = got[1]};
}

} // namespace redlock::soak
