#include "form_command.hpp"

#include "command_parts.hpp"
#include "form_scripts.hpp"
#include "heal_scripts.hpp"
#include "keys.hpp"

#include <array>
#include <cassert>
#include <initializer_list>
#include <vector>

namespace redlock::core {

namespace {

// The call of a script with a variable number of keys.
void append_call(
    std::string& out,
    command_variant how,
    const script& what,
    std::string_view packed,
    std::string_view last_key,
    std::initializer_list<std::string_view> arguments) {
    std::vector<std::string_view> words{verb(how), body(how, what), {}};
    for_each_packed(packed, [&](std::string_view key) { words.push_back(key); });
    if (!last_key.empty()) {
        words.push_back(last_key);
    }
    const decimal keys(words.size() - 3);
    words[2] = keys;
    words.insert(words.end(), arguments);
    append_command(out, words);
}

// An extension and a heal of several resources have the same arguments.
void append_keep_all(
    std::string& out,
    command_variant how,
    const script& what,
    const lock_names& names,
    const master_guard& guard,
    std::chrono::milliseconds ttl,
    const fence& fencing) {
    append_call(
        out,
        how,
        what,
        names.lock,
        names.record,
        {names.token,
         decimal(ttl.count()),
         decimal(fencing.token),
         decimal(fencing.ttl.count()),
         guard.run_id,
         decimal(guard.quarantine.count()),
         decimal(guard.not_after_us)});
}

// The same for a writer.
void append_keep_writer(
    std::string& out,
    command_variant how,
    const script& what,
    const lock_names& names,
    const master_guard& guard,
    std::chrono::milliseconds ttl,
    const fence& fencing) {
    append_command(
        out,
        {verb(how),
         body(how, what),
         "4",
         names.lock,
         names.fence,
         names.record,
         key_beside(names.fence, "readers"),
         names.token,
         decimal(ttl.count()),
         decimal(fencing.token),
         decimal(fencing.ttl.count()),
         guard.run_id,
         decimal(guard.quarantine.count()),
         decimal(guard.not_after_us)});
}

} // namespace

void append_acquire(
    std::string& out,
    lock_form form,
    command_variant how,
    const lock_names& names,
    const master_guard& guard,
    std::chrono::milliseconds ttl,
    const fence& fencing,
    const writer_intent& intent) {
    switch (form) {
    case lock_form::exclusive:
        assert(false); // outbox.hpp
        break;
    case lock_form::all:
        append_call(
            out,
            how,
            all_acquire,
            names.lock,
            names.record,
            {names.token,
             decimal(ttl.count()),
             guard.run_id,
             decimal(guard.quarantine.count()),
             decimal(guard.not_after_us),
             decimal(fencing.ttl.count())});
        break;
    case lock_form::shared:
        append_command(
            out,
            {verb(how),
             body(how, shared_acquire),
             "4",
             names.lock,
             key_beside(names.fence, "readers"),
             key_beside(names.fence, "intent"),
             names.record,
             names.token,
             decimal(ttl.count()),
             guard.run_id,
             decimal(guard.quarantine.count()),
             decimal(guard.not_after_us)});
        break;
    case lock_form::writer:
        append_command(
            out,
            {verb(how),
             body(how, writer_acquire),
             "5",
             names.lock,
             names.fence,
             names.record,
             key_beside(names.fence, "readers"),
             key_beside(names.fence, "intent"),
             names.token,
             decimal(ttl.count()),
             guard.run_id,
             decimal(guard.quarantine.count()),
             decimal(guard.not_after_us),
             decimal(fencing.ttl.count()),
             decimal(intent.lease.count()),
             decimal(intent.name)});
        break;
    }
}

void append_raise(
    std::string& out,
    lock_form form,
    command_variant how,
    const lock_names& names,
    const fence& fencing) {
    if (form == lock_form::all) {
        append_call(
            out,
            how,
            all_raise,
            names.lock,
            {},
            {names.token, decimal(fencing.token), decimal(fencing.ttl.count())});
    } else {
        append_raise(out, how, names, fencing);
    }
}

void append_extend(
    std::string& out,
    lock_form form,
    command_variant how,
    const lock_names& names,
    const master_guard& guard,
    std::chrono::milliseconds ttl,
    const fence& fencing,
    std::string_view channel) {
    switch (form) {
    case lock_form::exclusive:
        assert(false); // outbox.hpp
        break;
    case lock_form::all:
        append_keep_all(out, how, all_extend, names, guard, ttl, fencing);
        break;
    case lock_form::shared:
        append_command(
            out,
            {verb(how),
             body(how, shared_extend),
             "3",
             names.lock,
             key_beside(names.fence, "readers"),
             names.record,
             names.token,
             decimal(ttl.count()),
             guard.run_id,
             decimal(guard.quarantine.count()),
             decimal(guard.not_after_us),
             channel});
        break;
    case lock_form::writer:
        append_keep_writer(out, how, writer_extend, names, guard, ttl, fencing);
        break;
    }
}

void append_heal(
    std::string& out,
    lock_form form,
    command_variant how,
    const lock_names& names,
    const master_guard& guard,
    std::chrono::milliseconds ttl,
    const fence& fencing) {
    switch (form) {
    case lock_form::exclusive:
        append_guarded_heal(out, how, names, guard, ttl, fencing);
        break;
    case lock_form::all:
        append_keep_all(out, how, all_heal, names, guard, ttl, fencing);
        break;
    case lock_form::shared:
        append_command(
            out,
            {verb(how),
             body(how, shared_heal),
             "3",
             names.lock,
             key_beside(names.fence, "readers"),
             names.record,
             names.token,
             decimal(ttl.count()),
             guard.run_id,
             decimal(guard.quarantine.count()),
             decimal(guard.not_after_us)});
        break;
    case lock_form::writer:
        append_keep_writer(out, how, writer_heal, names, guard, ttl, fencing);
        break;
    }
}

void append_remove(
    std::string& out,
    lock_form form,
    command_variant how,
    const lock_names& names,
    const fence& fencing,
    std::string_view channel,
    std::uint64_t intent) {
    if (form == lock_form::writer) {
        append_command(
            out,
            {verb(how),
             body(how, writer_release),
             "3",
             names.lock,
             names.fence,
             key_beside(names.fence, "intent"),
             names.token,
             decimal(fencing.token),
             decimal(fencing.ttl.count()),
             channel,
             decimal(intent)});
    } else if (form == lock_form::shared) {
        append_command(
            out,
            {verb(how),
             body(how, shared_release),
             "2",
             names.lock,
             key_beside(names.fence, "readers"),
             names.token,
             channel});
    } else if (form == lock_form::all) {
        append_call(
            out,
            how,
            all_release,
            names.lock,
            {},
            {names.token,
             decimal(fencing.token),
             decimal(fencing.ttl.count()),
             channel.empty() ? std::string_view() : channel_suffix});
    } else {
        assert(false); // outbox.hpp
    }
}

} // namespace redlock::core
