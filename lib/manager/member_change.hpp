// A change of the members of the quorum: which steps are left and whether they can be made, by what
// the masters report. The command line uses these functions as well; it makes changes that are not
// public, and shows those that it would make.

#pragma once

#include "config/invalid_value.hpp"
#include "core/masters/member_list.hpp"

#include <redlock/lock_manager.hpp>

#include <boost/asio/any_completion_handler.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

using core::member_change;
/// One change, or an addition and a removal that are made one after the other.
using member_changes = std::vector<member_change>;

/// The name by which a master is a member.
std::string member_name(const endpoint& master);
bool is_member(const health& now, std::string_view name);
/// Returns null if it is not one of `config::masters`.
const master_health* state_of(const health& now, const config& how, std::string_view name);
bool replies(const master_health& one);
/// Returns the name of a master that has newer members, of which the list of masters has too few.
std::string outdated_on(const health& now, const config& how);

/// Checks the protocol and the names.
validation check_members(const member_changes& wanted, const config& how);

struct member_plan {
    member_changes steps; ///< that are not final yet, in a safe order
    error_code error;     ///< why they cannot be made
    std::string text;     ///< the same as a sentence
};

/// Plans the next steps. `current`: the step that is being made. `patient`: does not refuse them
/// because of another change that is planned.
member_plan plan_of(
    const member_changes& wanted,
    const health& now,
    const config& how,
    bool patient = false,
    const std::optional<member_change>& current = {});

/// As `lock_manager::async_add_member`, for any change. `why` may be null.
void change_members(
    const lock_manager& manager,
    member_changes wanted,
    bool patient,
    diagnostics* why,
    boost::asio::any_completion_handler<void(error_code)> done);

/// Founds the quorum with the masters of this manager, in place of a list that is not final. Call
/// it right after `async_run`. `unused`: no lock can have been on them, so no quarantine is needed.
void found_quorum(const lock_manager& manager, bool unused);

}}} // namespace redlock::REDLOCK_ABI::detail
