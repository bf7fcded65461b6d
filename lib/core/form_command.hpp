// The commands for a lock of any form, in the guarded protocol: a script of that form, its keys and
// its arguments. An exclusive lock shares its calls (outbox.hpp), so that form is only raised and
// healed here.

#pragma once

#include "command.hpp"
#include "form.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace redlock::core {

struct form_command {
    command_kind kind = command_kind::acquire; // or raise, extend, heal, remove
    lock_form form = lock_form::exclusive;
    command_variant how = command_variant::eval;
    /// For several resources `lock` is packed (form.hpp): the lock key and the key of the fencing
    /// counter of each.
    lock_names names = {};
    fence fencing = {};

    /// \name Not all kinds have these
    /// \{
    std::chrono::milliseconds ttl{}; // not raise, remove
    master_guard guard = {};         // not raise, remove
    std::string_view channel = {};   // where a removal or a downgrade is published; empty: nowhere
    writer_intent intent = {};       // announced by an acquire; its name: deleted by a removal
    /// \}
};

void append_form_command(std::string& out, const form_command& what);

} // namespace redlock::core
