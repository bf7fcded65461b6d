// Loading the script of a release, and formatting.
#include "floor_commands.hpp"

#include "wire.hpp"

#include <chrono>

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr auto set_up_limit = 2s;

// The library's compare-and-delete.
constexpr std::string_view release_script =
    R"(local v = redis.call("GET", KEYS[1]) if v == ARGV[1] then )"
    R"(return redis.call("DEL", KEYS[1]) end if v then return 0 end return -1)";

} // namespace

release_command::release_command(const std::vector<address>& masters) {
    for (const auto& master : masters) {
        blocking_connection connection(master, set_up_limit);
        sha_ = connection.command({"SCRIPT", "LOAD", release_script});
    }
}

command_template::command_template(
    const std::vector<std::string_view>& words, std::string_view token)
    : bytes_(format_command(words)),
      token_at_(bytes_.rfind(token)) {}

} // namespace bench
