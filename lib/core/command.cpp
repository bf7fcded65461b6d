#include "command.hpp"

#include "command_parts.hpp"
#include "decisions.hpp"
#include "fair_queue_scripts.hpp"
#include "guarded_scripts.hpp"
#include "heal_scripts.hpp"
#include "keys.hpp"
#include "scripts.hpp"
#include "slot_scripts.hpp"

#include <vector>

namespace redlock::core {

void append_set(
    std::string& out, std::string_view key, std::string_view token, std::chrono::milliseconds ttl) {
    if (wrong::set_without_nx) {
        append_command(out, {"SET", key, token, "PX", decimal(ttl.count())});
        return;
    }
    if (wrong::set_then_pexpire) {
        append_command(out, {"SET", key, token, "NX"});
        return;
    }
    append_command(out, {"SET", key, token, "NX", "PX", decimal(ttl.count())});
}

void append_remove(
    std::string& out,
    command_variant how,
    native_delete native,
    std::string_view key,
    std::string_view token,
    std::string_view channel) {
    if (how == command_variant::native && native == native_delete::delex) {
        append_command(out, {"DELEX", key, "IFEQ", token});
    } else if (how == command_variant::native) {
        append_command(out, {"DELIFEQ", key, token});
    } else if (channel.empty()) {
        append_command(out, {verb(how), body(how, compare_and_delete), "1", key, token});
    } else {
        append_command(out, {verb(how), body(how, compare_and_delete), "1", key, token, channel});
    }
}

void append_publish(std::string& out, std::string_view channel, std::string_view token) {
    append_command(out, {"PUBLISH", channel, token.substr(0, release_name_size)});
}

void append_extend(
    std::string& out,
    command_variant how,
    std::string_view key,
    std::string_view token,
    std::chrono::milliseconds ttl) {
    const decimal ttl_ms(ttl.count());
    if (how == command_variant::native) {
        append_command(out, {"SET", key, token, "IFEQ", token, "PX", ttl_ms});
    } else {
        append_command(out, {verb(how), body(how, compare_and_extend), "1", key, token, ttl_ms});
    }
}

void append_handshake(
    std::string& out,
    std::string_view record,
    const master_guard& guard,
    std::string_view promoted_from,
    bool stepped,
    std::string_view id,
    std::string_view list,
    std::string_view on) {
    const decimal quarantine(guard.quarantine.count());
    const std::array<std::string_view, 11> words{
        "EVAL",
        guarded_handshake.text,
        "1",
        record,
        guard.run_id,
        promoted_from.empty() ? "-" : promoted_from,
        quarantine,
        stepped ? "1" : "0",
        id,
        list,
        on};
    append_command(out, std::span(words).first(on.empty() ? list.empty() ? 9 : 10 : 11));
}

void append_raise(
    std::string& out, command_variant how, const lock_names& names, const fence& fencing) {
    append_command(
        out,
        {verb(how),
         body(how, guarded_raise),
         "2",
         names.lock,
         names.fence,
         names.token,
         decimal(fencing.token),
         decimal(fencing.ttl.count())});
}

void append_guarded_heal(
    std::string& out,
    command_variant how,
    const lock_names& names,
    const master_guard& guard,
    std::chrono::milliseconds ttl,
    const fence& fencing) {
    append_command(
        out,
        {verb(how),
         body(how, guarded_heal),
         "3",
         names.lock,
         names.fence,
         names.record,
         names.token,
         decimal(ttl.count()),
         decimal(fencing.token),
         decimal(fencing.ttl.count()),
         guard.run_id,
         decimal(guard.quarantine.count()),
         decimal(guard.not_after_us)});
}

void append_turn(
    std::string& out,
    command_variant how,
    const queue_names& names,
    std::chrono::milliseconds place_lease) {
    append_command(
        out,
        {verb(how),
         body(how, turn_take),
         "3",
         names.lock,
         names.queue,
         names.places,
         names.waiter,
         decimal(place_lease.count())});
}

void append_leave(
    std::string& out, command_variant how, const queue_names& names, std::string_view channel) {
    append_command(
        out,
        {verb(how),
         body(how, turn_leave),
         "3",
         names.lock,
         names.queue,
         names.places,
         names.waiter,
         channel});
}

void append_owners(
    std::string& out, std::string_view pool_key, std::uint32_t first, std::uint32_t count) {
    std::vector<std::string> keys(count);
    std::vector<std::string_view> words{"MGET"};
    for (std::uint32_t i = 0; i < count; ++i) {
        assign_slot_key(keys[i], pool_key, first + i);
        words.push_back(keys[i]);
    }
    append_command(out, words);
}

// Always with the text of the script: it is rare, and no command variant needs to be remembered.
void append_slot_scan(
    std::string& out, std::string_view pool_key, std::uint32_t first, std::uint32_t count) {
    append_command(out, {"EVAL", scan_slots, "1", pool_key, decimal(first), decimal(count)});
}

} // namespace redlock::core
