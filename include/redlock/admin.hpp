// What an operator does to the locks of a quorum without holding them: lists them, and releases
// one whose holder is gone. No lock needs it. The functions block, each with connections of its
// own, and may be called from any thread. To change the masters of a quorum, see
// `lock_manager::async_replace_member`.

#pragma once

#include <redlock/config.hpp>
#include <redlock/version.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace admin {

/// What was done on one master.
struct master_result {
    std::string endpoint; ///< without a password
    bool done = false;    ///< `list`: it was read. `force_release`: the holder has no key there.
    std::string text;     ///< what was done, or why not; it may contain what the server has sent
};

/// The locks of a quorum.
struct held_locks {
    /// Resources of which any master has the key, in alphabetical order. Each may have ended since,
    /// or be held by a minority only: `lock_manager::async_query` shows it. The names come from the
    /// servers: print them with care.
    std::vector<std::string> resources;
    std::vector<master_result> masters; ///< in the order of the configuration
};

/// Reads the names of all keys from each master, a thousand per call, for at most a minute.
/// At most 100,000 locks per master are read.
/// \throws std::invalid_argument the configuration breaks a rule, or its `key_prefix` is empty, so
/// that locks cannot be distinguished from other keys
[[nodiscard]] held_locks list(const config& quorum);

/// When a lock is free after a release by force.
enum class force : std::uint8_t {
    /// At the end of the current lease: by then the holder must have stopped. It learns of the
    /// release at its next renewal.
    after_lease,
    /// At once, so that there are two holders until the next renewal. For a holder that is known to
    /// be dead.
    at_once,
};

/// What `force_release` did.
struct force_result {
    bool released = false;              ///< by a majority; a living holder can restore the others
    std::vector<master_result> masters; ///< in the order of the configuration
};

/// Releases a lock without its holder, where a master has the token that it reads first. In the
/// guarded protocol, a master is not touched whose memory record says that it, or a majority of its
/// members, is not in this configuration: it belongs to another quorum.
/// \throws std::invalid_argument the configuration or the name breaks a rule
force_result
force_release(const config& quorum, std::string_view resource, force when = force::after_lease);

}}} // namespace redlock::REDLOCK_ABI::admin
