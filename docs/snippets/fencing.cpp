// Quoted by docs/fencing.md.

#include <redlock/redlock.hpp>

#include <boost/asio/use_future.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace snippets::fencing {

namespace asio = boost::asio;

std::uint64_t take(redlock::lock_manager& manager) {
    redlock::acquire_options options;
    options.fencing = true; // protocol::guarded, the default
    redlock::lock lock = manager.async_acquire("account:7", options, asio::use_future).get();
    const std::uint64_t token = lock.fencing_token(); // 1 to 2^53 - 1
    return token;
}

void save(std::uint64_t token, std::int64_t first, std::int64_t second) {
    const redlock::fenced_set save("account:7"); // fence: {account:7}:highest-token
    // Or eval(), after NOSCRIPT; a ttl may follow.
    const auto words = save.evalsha(token, "balance 12");
    // hiredis: redisCommandArgv; redis-plus-plus: redis.command(words.begin(), words.end());
    // Boost.Redis: request.push_range(words[0], words.begin() + 1, words.end())
    // Throws stale_token_error.
    redlock::fenced_reply{.accepted = first, .highest = second}.require(token);
}

std::string script() {
    const std::string transfer = std::string(redlock::fence_check) + R"(
        redis.call('DECRBY', KEYS[2], ARGV[2])
        redis.call('INCRBY', KEYS[3], ARGV[2])
        return {1, tonumber(ARGV[1])}
    )";
    return transfer;
}

void remember(std::uint64_t token) {
    redlock::fenced<std::map<std::string, int>> table; // or fenced(value, highest) after a restart
    table.write(token, [](auto& entries) { entries["a"] = 1; }); // throws stale_token_error
}

} // namespace snippets::fencing
