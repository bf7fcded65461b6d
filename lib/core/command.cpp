#include "command.hpp"

#include "command_parts.hpp"
#include "decisions.hpp"
#include "scripts.hpp"

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

} // namespace redlock::core
