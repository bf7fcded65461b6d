#include "store.hpp"

#include <redlock/fenced.hpp>

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

std::vector<std::uint64_t> store::ask(const std::vector<std::string>& words) {
    std::vector<std::uint64_t> numbers;
    for (const std::string& one : client_.list(words)) {
        numbers.push_back(std::stoull(one));
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
