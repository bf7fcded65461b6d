#include "form_command.hpp"

#include "command_parts.hpp"
#include "form_scripts.hpp"
#include "heal_scripts.hpp"
#include "keys.hpp"

#include <cassert>
#include <initializer_list>
#include <span>
#include <vector>

namespace redlock::core {

namespace {

// The arguments of a command as text.
struct argument_texts {
    explicit argument_texts(const form_command& of)
        : ttl(of.ttl.count()),
          fence(of.fencing.token),
          fence_ttl(of.fencing.ttl.count()),
          run_id(of.guard.run_id),
          quarantine(of.guard.quarantine.count()),
          not_after(of.guard.not_after_us),
          intent_lease(of.intent.lease.count()),
          intent(of.intent.name) {}

    decimal ttl;
    decimal fence;
    decimal fence_ttl;
    std::string_view run_id;
    decimal quarantine;
    decimal not_after;
    decimal intent_lease;
    decimal intent;
};

// The call of one script.
class call {
public:
    call(std::string& out, command_variant how) noexcept : out_(out), how_(how) {}

    void operator()(
        const script& what,
        std::span<const std::string_view> keys,
        std::initializer_list<std::string_view> arguments) const {
        append_array(out_, 3 + keys.size() + arguments.size());
        append_argument(out_, verb(how_));
        append_argument(out_, body(how_, what));
        append_argument(out_, decimal(keys.size()));
        append_all(keys);
        append_all(arguments);
    }
    void operator()(
        const script& what,
        std::initializer_list<std::string_view> keys,
        std::initializer_list<std::string_view> arguments) const {
        (*this)(what, std::span(keys.begin(), keys.size()), arguments);
    }

private:
    template <typename Words>
    void append_all(const Words& words) const {
        for (const std::string_view word : words) {
            append_argument(out_, word);
        }
    }

    std::string& out_;
    command_variant how_;
};

void append_exclusive(std::string& out, const form_command& what) {
    if (what.kind == command_kind::raise) {
        append_raise(out, what.how, what.names, what.fencing);
    } else {
        assert(what.kind == command_kind::heal); // the others are in outbox.hpp
        append_guarded_heal(out, what.how, what.names, what.guard, what.ttl, what.fencing);
    }
}

void append_all(const call& append, const form_command& what) {
    const argument_texts is(what);
    const std::string_view token = what.names.token;
    std::vector<std::string_view> keys;
    for_each_packed(what.names.lock, [&](std::string_view key) { keys.push_back(key); });
    keys.push_back(what.names.record);
    const auto of_locks = std::span(keys).first(keys.size() - 1);
    switch (what.kind) {
    case command_kind::acquire:
        append(
            all_acquire,
            keys,
            {token, is.ttl, is.run_id, is.quarantine, is.not_after, is.fence_ttl});
        break;
    case command_kind::raise:
        append(all_raise, of_locks, {token, is.fence, is.fence_ttl});
        break;
    case command_kind::remove: {
        const std::string_view publishes = what.channel.empty() ? what.channel : channel_suffix;
        append(all_release, of_locks, {token, is.fence, is.fence_ttl, publishes});
        break;
    }
    default:
        append(
            what.kind == command_kind::extend ? all_extend : all_heal,
            keys,
            {token, is.ttl, is.fence, is.fence_ttl, is.run_id, is.quarantine, is.not_after});
    }
}

void append_shared(const call& append, const form_command& what) {
    const argument_texts is(what);
    const auto& [lock, fence, record, token] = what.names;
    const std::string readers = key_beside(fence, "readers");
    switch (what.kind) {
    case command_kind::acquire:
        append(
            shared_acquire,
            {lock, readers, key_beside(fence, "intent"), record},
            {token, is.ttl, is.run_id, is.quarantine, is.not_after});
        break;
    case command_kind::extend:
        append(
            shared_extend,
            {lock, readers, record},
            {token, is.ttl, is.run_id, is.quarantine, is.not_after, what.channel});
        break;
    case command_kind::remove:
        append(shared_release, {lock, readers}, {token, what.channel});
        break;
    default: // a reader has no fencing token to raise
        assert(what.kind == command_kind::heal);
        append(
            shared_heal,
            {lock, readers, record},
            {token, is.ttl, is.run_id, is.quarantine, is.not_after});
    }
}

void append_writer(const call& append, const form_command& what) {
    const argument_texts is(what);
    const auto& [lock, fence, record, token] = what.names;
    const std::string readers = key_beside(fence, "readers");
    const std::string intent = key_beside(fence, "intent");
    switch (what.kind) {
    case command_kind::acquire:
        append(
            writer_acquire,
            {lock, fence, record, readers, intent},
            {token,
             is.ttl,
             is.run_id,
             is.quarantine,
             is.not_after,
             is.fence_ttl,
             is.intent_lease,
             is.intent});
        break;
    case command_kind::remove:
        append(
            writer_release,
            {lock, fence, intent},
            {token, is.fence, is.fence_ttl, what.channel, is.intent});
        break;
    default:
        append(
            what.kind == command_kind::extend ? writer_extend : writer_heal,
            {lock, fence, record, readers},
            {token, is.ttl, is.fence, is.fence_ttl, is.run_id, is.quarantine, is.not_after});
    }
}

} // namespace

void append_form_command(std::string& out, const form_command& what) {
    const call append(out, what.how);
    if (!has_own_script(what.form, what.kind)) {
        append_exclusive(out, what);
    } else if (what.form == lock_form::all) {
        append_all(append, what);
    } else if (what.form == lock_form::shared) {
        append_shared(append, what);
    } else {
        append_writer(append, what);
    }
}

} // namespace redlock::core
