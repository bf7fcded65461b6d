#include <redlock/fenced.hpp>
#include <redlock/with_diagnostics.hpp>

#include <boost/system/errc.hpp>

#include <exception>
#include <iterator>
#include <stdexcept>

namespace redlock { inline namespace REDLOCK_ABI {

namespace {

// The ttl is checked before the fence, so that a wrong call changes nothing. The check of the fence
// is a block of its own, so that its names do not collide with those of the script after it. Tokens
// are compared as doubles, which is why they end at 2^53 - 1. Everything is read before the first
// write.
constexpr std::string_view set_text =
    R"(if ARGV[3] and not string.match(ARGV[3], '^[1-9]%d*$') then
  return redis.error_reply('FENCE the ttl is not a whole number of milliseconds')
end
do
  local function is_token(text)
    return string.match(text, '^[1-9]%d*$') and tonumber(text) <= 9007199254740991
  end
  local token = ARGV[1] or ''
  if not is_token(token) then
    return redis.error_reply('FENCE the token is not a whole number from 1 to 2^53 - 1')
  end
  local highest = redis.call('GET', KEYS[1])
  if highest then
    if not is_token(highest) then
      return redis.error_reply('FENCE the fence key holds something that is no token')
    end
    if tonumber(token) < tonumber(highest) then return {0, tonumber(highest)} end
  end
  if token ~= highest then redis.call('SET', KEYS[1], token) end
end
if ARGV[3] then redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
else redis.call('SET', KEYS[2], ARGV[2]) end
return {1, tonumber(ARGV[1])}
)";

constexpr std::size_t check_begin = set_text.find("do\n");
constexpr std::size_t check_end = set_text.find("\nend\n", check_begin) + std::size("\nend\n") - 1;

// The library's own SHA-1 is not public; a test compares this. Other versions run this script as
// well.
constexpr std::string_view set_digest = "56267f8927a83f34a558135b6c0a478c881d22ef";

using detail::fencing_token_max;

constexpr bool is_token(std::uint64_t token) noexcept {
    return token >= 1 && token <= fencing_token_max;
}

std::string not_a_token(std::uint64_t token) {
    return "fencing token " + std::to_string(token) + "; allowed: 1 to "
           + std::to_string(fencing_token_max);
}

std::string stale_text(std::uint64_t token, std::optional<std::uint64_t> highest) {
    return "stale fencing token " + std::to_string(token) + ": the resource has seen "
           + (highest ? std::to_string(*highest) : "a larger one");
}

// The name of a fence for one key.
std::string fence_of(std::string key) {
    const std::size_t opens = key.find('{');
    const std::size_t closes = key.find('}', opens);
    if (closes == std::string::npos || closes == opens + 1) { // no hash tag
        if (key.empty() || key.find('}') != std::string::npos) {
            throw std::invalid_argument(
                "no fence can be named after the key '" + key
                + "': it is empty, or has a '}' but no hash tag; name the fence yourself");
        }
        key = "{" + key + "}";
    }
    return key.append(":highest-token");
}

} // namespace

stale_token_error::stale_token_error(std::uint64_t token, std::optional<std::uint64_t> highest)
    : system_error(errc::stale_token),
      token_(token),
      highest_(highest),
      text_(std::make_shared<const std::string>(stale_text(token, highest))) {}

std::uint64_t detail::fence_mark(std::uint64_t highest) {
    if (highest > fencing_token_max) {
        throw std::invalid_argument(not_a_token(highest));
    }
    return highest;
}

void detail::admit(std::uint64_t token, std::uint64_t& mark) {
    if (!is_token(token)) {
        diagnostics why;
        why.message = not_a_token(token);
        std::rethrow_exception(detail::explained(errc::invalid_argument, std::move(why)));
    }
    if (token < mark) {
        throw stale_token_error(token, mark);
    }
    mark = token;
}

void fenced_reply::require(std::uint64_t token) const {
    // A negative number becomes a value that is not a token.
    const auto seen = static_cast<std::uint64_t>(highest);
    const bool possible = is_token(token) && is_token(seen);
    if (possible && accepted == 1 && seen == token) {
        return;
    }
    if (possible && accepted == 0 && seen > token) {
        throw stale_token_error(token, seen);
    }
    throw boost::system::system_error(
        make_error_code(boost::system::errc::protocol_error),
        "not a reply of a fenced script to token " + std::to_string(token) + ": {"
            + std::to_string(accepted) + ", " + std::to_string(highest) + "}");
}

constinit const std::string_view fence_check =
    set_text.substr(check_begin, check_end - check_begin);

fenced_set::fenced_set(std::string key, std::string fence)
    : key_(std::move(key)),
      fence_(fence.empty() ? fence_of(key_) : std::move(fence)) {
    if (key_ == fence_) {
        throw std::invalid_argument("the key and its fence have the same name, '" + key_ + "'");
    }
}

std::vector<std::string>
fenced_set::eval(std::uint64_t token, std::string_view value, std::chrono::milliseconds ttl) const {
    return command("EVAL", set_text, token, value, ttl);
}

std::vector<std::string> fenced_set::evalsha(
    std::uint64_t token, std::string_view value, std::chrono::milliseconds ttl) const {
    return command("EVALSHA", set_digest, token, value, ttl);
}

std::vector<std::string> fenced_set::command(
    const char* name,
    std::string_view script_or_digest,
    std::uint64_t token,
    std::string_view value,
    std::chrono::milliseconds ttl) const {
    if (!is_token(token)) {
        throw std::invalid_argument(not_a_token(token));
    }
    // A server refuses an expiry that it cannot represent only after it has raised the fence.
    constexpr std::chrono::milliseconds longest = std::chrono::days(36'500);
    if (ttl < std::chrono::milliseconds::zero() || ttl > longest) {
        throw std::invalid_argument(
            "ttl is " + std::to_string(ttl.count()) + " ms; allowed: 0 to 36500 days");
    }
    std::vector<std::string> words{
        name,
        std::string(script_or_digest),
        "2",
        fence_,
        key_,
        std::to_string(token),
        std::string(value)};
    if (ttl != std::chrono::milliseconds::zero()) {
        words.push_back(std::to_string(ttl.count()));
    }
    return words;
}

}} // namespace redlock::REDLOCK_ABI
