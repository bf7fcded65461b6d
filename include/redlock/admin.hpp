// What an operator does to the locks of a quorum without holding them: lists them, and releases
// one whose holder is gone. No lock needs it. The functions block, each with connections of its
// own, and may be called from any thread. To change the masters of a quorum, see
// `lock_manager::async_replace_member`.

#pragma once

#include <redlock/config.hpp>
#include <redlock/diagnostics.hpp>
#include <redlock/version.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace admin {

/// The locks of a quorum.
struct held_locks {
    /// Resources of which any master has the key, in alphabetical order. Each may have ended since,
    /// or be held by a minority only: `lock_manager::async_query` shows it. The names come from the
    /// servers: print them with care.
    std::vector<std::string> resources;
    /// `granted`: it was read. Otherwise `error`, and the text has the reason. In the order of the
    /// configuration.
    std::vector<master_vote> masters;
};

/// Reads the names of all keys from each master, a thousand per call, for at most a minute.
/// At most 100,000 locks per master are read.
/// \throws std::invalid_argument the configuration breaks a rule, or its `key_prefix` is empty, so
/// that locks cannot be distinguished from other keys
[[nodiscard]] held_locks list(const config& quorum);

/// What a release by force did.
struct force_result {
    bool released = false; ///< by a majority; a living holder can restore the others
    /// `granted`: the key was taken from the holder. `absent`: there was none. `owned_by_other`: it
    /// has another holder now. Otherwise `error`. The text says what was done, or why not. In the
    /// order of the configuration.
    std::vector<master_vote> masters;
};

/// Releases a lock without its holder, where a master has the token that it reads first. The lock
/// is free at the end of the current lease: by then the holder must have stopped. It learns of the
/// release at its next renewal.
///
/// In the guarded protocol, a master is not touched whose memory record says that it, or a majority
/// of its members, is not in this configuration: it belongs to another quorum.
/// \throws std::invalid_argument the configuration or the name breaks a rule
force_result force_release(const config& quorum, std::string_view resource);

/// Same as `force_release`, but the lock is free at once. For a holder that is known to be dead: if
/// it is alive, there are two holders until its next renewal.
force_result force_release_now(const config& quorum, std::string_view resource);

}}} // namespace redlock::REDLOCK_ABI::admin
