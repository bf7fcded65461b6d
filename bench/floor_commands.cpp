// Finding out which release command the masters have, and formatting.
#include "floor_commands.hpp"

#include "wire.hpp"

#include <chrono>
#include <stdexcept>

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr auto set_up_limit = 2s;

// The library's compare-and-delete.
constexpr std::string_view release_script =
    R"(local v = redis.call("GET", KEYS[1]) if v == ARGV[1] then )"
    R"(return redis.call("DEL", KEYS[1]) end if v then return 0 end return -1)";

// Whether every master has this command. Asks by using it on a key that does not exist.
bool all_know(const std::vector<address>& masters, const std::vector<std::string_view>& command) {
    for (const auto& master : masters) {
        blocking_connection connection(master, set_up_limit);
        try {
            connection.command(command);
        } catch (const std::runtime_error&) {
            return false;
        }
    }
    return true;
}

} // namespace

release_command::release_command(const std::vector<address>& masters) {
    const auto key = lock_key(resource_names(1).front());
    if (all_know(masters, {"DELEX", key, "IFEQ", "none"})) {
        name_ = "DELEX";
    } else if (all_know(masters, {"DELIFEQ", key, "none"})) {
        name_ = "DELIFEQ";
    } else {
        name_ = "EVALSHA";
        for (const auto& master : masters) {
            blocking_connection connection(master, set_up_limit);
            sha_ = connection.command({"SCRIPT", "LOAD", release_script});
        }
    }
}

std::vector<std::string_view>
release_command::words(std::string_view key, std::string_view token) const {
    if (name_ == "DELEX") {
        return {name_, key, "IFEQ", token};
    }
    if (name_ == "DELIFEQ") {
        return {name_, key, token};
    }
    return {name_, sha_, "1", key, token};
}

command_template::command_template(
    const std::vector<std::string_view>& words, std::string_view token)
    : bytes_(format_command(words)),
      token_at_(bytes_.rfind(token)) {}

} // namespace bench
