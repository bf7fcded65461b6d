// The permissions that a client of the masters needs.

#pragma once

#include <redlock/config.hpp>

#include <string>

namespace cli {

/// "ACL SETUSER ..." that is sufficient for this configuration.
std::string acl_line(const redlock::config& how);

} // namespace cli
