#include "command.hpp"

#include "core/base/decisions.hpp"
#include "form_scripts.hpp"
#include "keys.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace redlock::core {

std::string_view set_begin() noexcept {
    return wrong::set_without_nx     ? "*5\r\n$3\r\nSET\r\n"
           : wrong::set_then_pexpire ? "*4\r\n$3\r\nSET\r\n"
                                     : "*6\r\n$3\r\nSET\r\n";
}

std::string set_end(std::chrono::milliseconds ttl) {
    std::string out = wrong::set_without_nx ? "" : "$2\r\nNX\r\n";
    if (wrong::set_then_pexpire) {
        return out;
    }
    append_argument(out, "PX");
    append_argument(out, decimal(ttl.count()));
    return out;
}

void append_publish(std::string& out, std::string_view channel, std::string_view token) {
    append_command(out, {"PUBLISH", channel, token.substr(0, release_name_size)});
}

namespace {

// The call of a script. Each letter stands for a key (`add_key`) or an argument (`add_argument`).
struct script_call {
    lock_form form;
    command_kind kind;
    const script* what;
    std::string_view keys;
    std::string_view arguments;
};

const script_call& call_of(lock_form form, command_kind kind) {
    using enum lock_form;
    using enum command_kind;
    // An exclusive lock shares the calls of the other kinds (frame.hpp). A reader has no counter.
    static constexpr script_call calls[] = {
        {exclusive, raise, &all_raise, "LF", "ocx"},
        {exclusive, heal, &all_heal, "LFM", "otcxrqu"},
        {all, acquire, &all_acquire, "AM", "otrquxfe"},
        {all, raise, &all_raise, "A", "ocx"},
        {all, extend, &all_extend, "AM", "otcxrqu"},
        {all, heal, &all_heal, "AM", "otcxrqu"},
        {all, remove, &all_release, "A", "ocxs"},
        {shared, acquire, &shared_acquire, "LRMI", "otrqu"},
        {shared, extend, &shared_extend, "LRM", "otrqup"},
        {shared, heal, &shared_heal, "LRM", "otrqu"},
        {shared, remove, &shared_release, "LR", "op"},
        {announced, acquire, &announced_acquire, "LFMI", "otrquxfeli"},
        {announced, remove, &announced_release, "LI", "opi"},
    };
    const lock_form of = has_own_script(form, kind) ? form : exclusive;
    const auto* const found = std::ranges::find_if(
        calls, [&](const script_call& one) { return one.form == of && one.kind == kind; });
    assert(found != std::end(calls));
    return *found;
}

template <typename Add>
void add_key(const lock_names& names, char letter, Add add) {
    switch (letter) {
    case 'A': // of all locks, with their fencing counters
        return for_each_packed(names.lock, add);
    case 'F':
        return add(names.fence);
    case 'I':
        return add(key_beside(names.fence, "intent"));
    case 'L':
        return add(names.lock);
    case 'M':
        return add(names.record);
    default:
        return add(key_beside(names.fence, "readers"));
    }
}

template <typename Add>
void add_argument(const form_command& of, char letter, Add add) {
    switch (letter) {
    case 'c':
        return add(decimal(of.fencing.token));
    case 'e':
        return add(decimal(of.fencing.first.earliest_us));
    case 'f':
        return add(decimal(of.fencing.first.value_us));
    case 'i':
        return add(decimal(of.intent.name));
    case 'l':
        return add(decimal(of.intent.lease.count()));
    case 'o': // the owner
        return add(of.names.token);
    case 'p': // where it is published
        return add(of.channel);
    case 'q':
        return add(decimal(of.guard.quarantine.count()));
    case 'r':
        return add(of.guard.run_id);
    case 's': // the same for several locks
        return add(of.channel.empty() ? of.channel : channel_suffix);
    case 't':
        return add(decimal(of.ttl.count()));
    case 'u': // until when it may be executed
        return add(decimal(of.guard.not_after_us));
    default: // 'x': the expiry of the counter
        return add(decimal(of.fencing.ttl.count()));
    }
}

} // namespace

void append_form_command(std::string& out, const form_command& what) {
    const script_call& call = call_of(what.form, what.kind);
    std::string words;
    std::size_t count = 0;
    const auto add = [&](std::string_view word) {
        append_argument(words, word);
        ++count;
    };
    for (const char letter : call.keys) {
        add_key(what.names, letter, add);
    }
    const std::size_t keys = count;
    for (const char letter : call.arguments) {
        add_argument(what, letter, add);
    }
    append_array(out, 3 + count);
    append_argument(out, verb(what.how));
    append_argument(out, body(what.how, *call.what));
    append_argument(out, decimal(keys));
    out.append(words);
}

} // namespace redlock::core
