#include "acl.hpp"

#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cli {

std::string acl_line(const redlock::config& how) {
    const std::string user = how.username.empty() ? "locker" : how.username;
    const std::string scope =
        how.key_prefix.empty() ? "~* &*" : fmt::format("~{0}* &{0}*", printable(how.key_prefix));
    return fmt::format(
        "ACL SETUSER {} reset on >PASSWORD {} +info +eval +evalsha +time +get +set +incr +del "
        "+pttl +pexpire +mget +zadd +zscore +zrange +zrank +zrem{} +ping "
        "+client|setname +publish +subscribe +unsubscribe{}",
        user,
        scope,
        how.protocol == redlock::protocol::guarded ? " +zremrangebyscore +zcard" : "",
        std::ranges::any_of(how.masters, [](const auto& one) { return one.database != 0; })
            ? " +select"
            : "");
}

} // namespace cli
