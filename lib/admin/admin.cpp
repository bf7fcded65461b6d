#include "config/settings_of.hpp"
#include "config/value_checks.hpp"
#include "connection.hpp"
#include "core/base/validity.hpp"
#include "core/bytes/keys.hpp"
#include "core/masters/member_list.hpp"

#include <redlock/admin.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>
#include <initializer_list>
#include <random>
#include <set>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace admin {
namespace {

using namespace std::chrono_literals;

using core::reply_type;
using detail::connection;
using detail::connection_error;
using detail::reply;

// Number of keys per SCAN: a master serves no other client during one.
constexpr const char* scan_count = "1000";

// A server that never ends its SCAN or invents keys is broken or hostile.
constexpr std::size_t scans_max = 100'000; // a hundred million keys
constexpr auto scan_time_max = 1min;
constexpr std::size_t listed_max = 100'000;

// Replaces the token that was seen by another one for the rest of its lease. The holder then finds
// that the key is not its own, and no other client acquires the lock before the holder must have
// stopped. A deletion would let the next owner in earlier, and a key that is missing on a minority
// only would be healed.
constexpr std::string_view replace_seen =
    "local v = redis.call('GET', KEYS[1]) if v ~= ARGV[1] then return v and 0 or -1 end "
    "local p = redis.call('PTTL', KEYS[1]) "
    "if p > 0 then redis.call('SET', KEYS[1], ARGV[2], 'PX', p) else redis.call('DEL', KEYS[1]) "
    "end "
    "return 1";

// Removes only the token that was seen, and notifies waiters, as a release does.
constexpr std::string_view remove_seen =
    "local v = redis.call('GET', KEYS[1]) if v ~= ARGV[1] then return v and 0 or -1 end "
    "redis.call('DEL', KEYS[1]) redis.pcall('PUBLISH', ARGV[2], string.sub(v, 1, 16)) return 1";

// Asks all masters at once, each in a thread of its own: several silent ones cost the time of one.
// `ask` returns the vote and the text of a master.
using found = std::pair<vote, std::string>;
std::vector<master_vote>
ask_all(const config& quorum, const std::function<found(connection&, std::size_t)>& ask) {
    std::vector<std::future<master_vote>> all;
    for (std::size_t i = 0; i < quorum.masters.size(); ++i) {
        all.push_back(std::async(std::launch::async, [&, i] {
            master_vote out;
            out.endpoint = to_string(quorum.masters[i]);
            try {
                connection master(quorum.masters[i], quorum);
                std::tie(out.vote, out.text) = ask(master, i);
            } catch (const connection_error& error) {
                out.vote = vote::error;
                out.text = error.what();
            }
            return out;
        }));
    }
    std::vector<master_vote> out;
    out.reserve(all.size());
    std::ranges::transform(all, std::back_inserter(out), [](auto& one) { return one.get(); });
    return out;
}

// Returns a pattern that matches only `text`.
std::string literal(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (std::string_view("*?[]\\^-").find(c) != std::string_view::npos) {
            out += '\\';
        }
        out += c;
    }
    return out;
}

// Returns what a master has replied, if it is of a type that this command can have.
reply checked(reply it, const char* command, std::initializer_list<reply_type> types) {
    if (it.failed()) {
        throw connection_error(it.text);
    }
    if (std::ranges::count(types, it.type) == 0) {
        throw connection_error(fmt::format("invalid reply to {}", command));
    }
    return it;
}

// The resources whose locks one master has.
std::set<std::string> scan(connection& master, std::string_view prefix) {
    std::set<std::string> out;
    const std::string pattern = literal(prefix) + "{*}";
    const auto deadline = std::chrono::steady_clock::now() + scan_time_max;
    std::size_t scans = 0;
    std::string cursor = "0";
    do { // NOLINT(cppcoreguidelines-avoid-do-while)
        if (++scans > scans_max || std::chrono::steady_clock::now() > deadline) {
            throw connection_error(
                fmt::format("SCAN did not end within 1 minute or {} calls", scans_max));
        }
        const reply page = checked(
            master.ask(
                {"SCAN", cursor, "MATCH", pattern, "COUNT", scan_count}, detail::scan_reply_max),
            "SCAN",
            {reply_type::array});
        if (page.items.size() != 2 || page.items[0].type != reply_type::string
            || page.items[1].type != reply_type::array) {
            throw connection_error("invalid reply to SCAN");
        }
        if (page.items[0].text == cursor && cursor != "0") { // Redis never stays where it is
            throw connection_error("invalid reply to SCAN: the cursor does not advance");
        }
        cursor = page.items[0].text;
        for (const reply& key : page.items[1].items) {
            const std::string_view name = key.text;
            // A server may send other keys than those that were asked for.
            if (name.size() > prefix.size() + 2 && name.starts_with(prefix)
                && name[prefix.size()] == '{' && name.ends_with('}')) {
                out.emplace(core::resource_of(name, prefix));
            }
        }
        if (out.size() > listed_max) {
            throw connection_error(fmt::format("more than {} locks", listed_max));
        }
    } while (cursor != "0");
    return out;
}

// Whether the memory record of a master shows that it belongs to another quorum than this
// configuration: the text says so, or is empty. `members`: of the newest generation so far.
std::string other_quorum(
    const core::recorded_list& list,
    const core::member_names& configured,
    const std::string& master) {
    if (!list.founded()) {
        return {};
    }
    const core::member_names members = list.voting();
    const auto known = static_cast<std::size_t>(std::ranges::count_if(
        members, [&](const std::string& one) { return std::ranges::count(configured, one) > 0; }));
    if (known < core::quorum_of(members.size()) || std::ranges::count(members, master) == 0) {
        return "not touched: not a member of this quorum: it has the record of "
               + core::shown(members);
    }
    return {};
}

core::recorded_list list_on(connection& master, const std::string& record_key) {
    const reply found =
        checked(master.ask({"GET", record_key}), "GET", {reply_type::string, reply_type::nil});
    return core::read_list(core::last_word(found.text));
}

// Takes the lock from its holder on one master: `other` becomes its token, or none if that is
// empty.
found take_from(connection& master, const detail::lock_keys& keys, const std::string& other) {
    const reply seen =
        checked(master.ask({"GET", keys.lock}), "GET", {reply_type::string, reply_type::nil});
    // Without a key the script is sent as well: any server can reply nil, but only Redis runs it.
    const bool at_once = other.empty();
    const reply done = checked(
        master.ask(
            {"EVAL",
             at_once ? remove_seen : replace_seen,
             "1",
             keys.lock,
             seen.text,
             at_once ? keys.channel : other}),
        "EVAL",
        {reply_type::integer});
    if (done.number < -1 || done.number > 1) {
        throw connection_error("invalid reply to EVAL");
    }
    if (done.number == 0) {
        return {vote::owned_by_other, "has another holder now"};
    }
    if (done.number < 0) {
        return {vote::absent, "had no key"};
    }
    return {vote::granted, at_once ? "removed" : "taken"};
}

std::string new_token() {
    std::random_device source;
    std::string out;
    while (out.size() < 40) {
        out += fmt::format("{:08x}", source());
    }
    return out;
}

// As `take_from`, on all masters.
force_result take(const config& quorum, std::string_view resource, const std::string& other) {
    validate(quorum);
    detail::check_resource(resource).value();
    const detail::lock_keys keys = detail::keys_of(quorum, resource);
    core::member_names names;
    std::ranges::transform(quorum.masters, std::back_inserter(names), detail::member_name);
    std::vector<core::recorded_list> lists(names.size());
    force_result out;
    out.masters = ask_all(quorum, [&](connection& master, std::size_t i) {
        if (quorum.protocol == protocol::guarded) {
            lists[i] = list_on(master, keys.record);
            if (std::string why = other_quorum(lists[i], names, names[i]); !why.empty()) {
                lists[i] = {};
                return found(vote::error, std::move(why));
            }
        }
        return take_from(master, keys, other);
    });
    const auto newest = std::ranges::max_element(lists, {}, &core::recorded_list::number);
    const std::size_t members = newest->founded() ? newest->voting().size() : names.size();
    const auto without = static_cast<std::size_t>(
        std::ranges::count(out.masters, vote::granted, &master_vote::vote)
        + std::ranges::count(out.masters, vote::absent, &master_vote::vote));
    out.released = without >= core::quorum_of(members);
    return out;
}

} // namespace

held_locks list(const config& quorum) {
    validate(quorum);
    if (quorum.key_prefix.empty()) {
        throw std::invalid_argument(
            "redlock: without a key_prefix, locks cannot be distinguished from other keys");
    }
    std::vector<std::set<std::string>> read(quorum.masters.size());
    held_locks out;
    out.masters = ask_all(quorum, [&](connection& master, std::size_t i) {
        read[i] = scan(master, quorum.key_prefix);
        return found(vote::granted, fmt::format("{} keys", read[i].size()));
    });
    std::set<std::string> all;
    for (std::set<std::string>& one : read) {
        all.merge(one);
    }
    out.resources.assign(all.begin(), all.end());
    return out;
}

force_result force_release(const config& quorum, std::string_view resource) {
    return take(quorum, resource, new_token());
}

force_result force_release_now(const config& quorum, std::string_view resource) {
    return take(quorum, resource, {});
}

}}} // namespace redlock::REDLOCK_ABI::admin
