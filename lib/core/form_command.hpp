// Formats the commands for a lock of any form, in the guarded protocol: chooses the script and its
// keys. For several resources `names.lock` is packed (form.hpp): the lock key and the fencing
// counter key of each. An exclusive lock shares its calls (outbox.hpp), so that form is only raised
// and healed here.

#pragma once

#include "command.hpp"
#include "form.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::core {

void append_acquire(
    std::string& out,
    lock_form form,
    command_variant how,
    const lock_names& names,
    const master_guard& guard,
    std::chrono::milliseconds ttl,
    const fence& fencing,
    const writer_intent& intent);
void append_raise(
    std::string& out,
    lock_form form,
    command_variant how,
    const lock_names& names,
    const fence& fencing);
/// Appends an extension, which creates no key. A downgrade is published on `channel`, unless it is
/// empty.
void append_extend(
    std::string& out,
    lock_form form,
    command_variant how,
    const lock_names& names,
    const master_guard& guard,
    std::chrono::milliseconds ttl,
    const fence& fencing,
    std::string_view channel);
/// Creates missing keys.
void append_heal(
    std::string& out,
    lock_form form,
    command_variant how,
    const lock_names& names,
    const master_guard& guard,
    std::chrono::milliseconds ttl,
    const fence& fencing);
/// An empty `channel` publishes nothing. `intent`: the name of a writer's intent that is removed as
/// well.
void append_remove(
    std::string& out,
    lock_form form,
    command_variant how,
    const lock_names& names,
    const fence& fencing,
    std::string_view channel,
    std::uint64_t intent);

} // namespace redlock::core
