#include "admin.hpp"

#include "command_line.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "redis.hpp"
#include "session.hpp"
#include "status.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>

namespace cli {
namespace {

// Number of keys per SCAN: a master serves no other client during one.
constexpr const char* scan_count = "1000";

// A server that never ends its SCAN or invents keys is broken or hostile.
constexpr std::size_t scans_max = 100'000; // a hundred million keys
constexpr milliseconds scan_time_max = std::chrono::minutes(1);
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

// Returns a pattern that matches only `text`.
std::string literal(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (std::string_view("*?[]\\^-").find(c) != std::string_view::npos) {
            out += '\\';
        }
        out += c;
    }
    return out;
}

// The resources whose locks one master has.
std::set<std::string> scan(redis& master, const redlock::config& how) {
    std::set<std::string> out;
    const std::string begin = how.key_prefix + "{";
    const std::string pattern = literal(begin) + "*}";
    const auto deadline = std::chrono::steady_clock::now() + scan_time_max;
    std::size_t scans = 0;
    std::string cursor = "0";
    do { // NOLINT(cppcoreguidelines-avoid-do-while)
        if (++scans > scans_max || std::chrono::steady_clock::now() > deadline) {
            throw connection_error(fmt::format(
                "SCAN did not end within {} and {} calls",
                duration_text(scan_time_max),
                scans_max));
        }
        const reply page = master.ask({"SCAN", cursor, "MATCH", pattern, "COUNT", scan_count});
        if (page.failed() || page.items.size() != 2) {
            throw connection_error(page.failed() ? page.text : "invalid reply to SCAN");
        }
        cursor = page.items[0].text;
        for (const reply& key : page.items[1].items) {
            const std::string_view name = key.text;
            if (name.starts_with(begin) && name.ends_with("}") && name.size() > begin.size() + 1) {
                out.emplace(name.substr(begin.size(), name.size() - begin.size() - 1));
            }
        }
        if (out.size() > listed_max) {
            throw connection_error(fmt::format("more than {} locks", listed_max));
        }
    } while (cursor != "0");
    return out;
}

int list(const settings& common) {
    redlock::config how = reading_config_of(common);
    if (how.key_prefix.empty()) {
        throw failure(
            exit_code::configuration,
            "without a prefix, locks cannot be distinguished from other keys: set --prefix");
    }
    std::vector<std::optional<std::set<std::string>>> found_on(how.masters.size());
    all_at_once(how.masters.size(), [&](std::size_t i) {
        try {
            redis master(how.masters[i], how);
            found_on[i] = scan(master, how);
        } catch (const connection_error& error) {
            say(fmt::format("{}: {}", to_string(how.masters[i]), printable(error.what())));
        }
    });
    std::set<std::string> resources;
    std::size_t read = 0;
    for (auto& one : found_on) {
        if (one) {
            resources.merge(*one);
            ++read;
        }
    }
    const bool enough = read > how.masters.size() / 2;
    session now(std::move(how));
    if (!resources.empty()) { // silent masters have cost their time already
        now.settle(need::all);
    }
    json all = json::array();
    for (const std::string& resource : resources) {
        if (const auto valid = redlock::validate_resource(resource); !valid) {
            say(fmt::format(
                "a key that is not a lock of this library: {}", in_options(valid.error())));
            continue;
        }
        const auto found = now.wait(
            [&](auto token) { return now.manager.async_query(resource, std::move(token)); });
        const bool gone = std::all_of(
            found.masters.begin(), found.masters.end(), [](const redlock::master_lock_status& one) {
                return one.vote == redlock::vote::absent;
            });
        if (gone) {
            continue; // it ended since the listing
        }
        if (common.json) {
            json one{{"resource", resource}};
            one.update(json_of(found));
            all.push_back(std::move(one));
        } else {
            const std::string text = text_of(resource, found);
            fmt::print("{}\n", text.substr(0, text.find('\n')));
        }
    }
    if (common.json) {
        print(all);
    }
    return enough ? 0 : static_cast<int>(exit_code::no_quorum);
}

struct taking {
    std::string key;
    bool at_once = false;
    std::string other; // replaces the holder's token
};

// What one master did: its text, and whether the holder has lost the key there.
std::pair<std::string, bool>
take_from(const redlock::endpoint& where, const redlock::config& how, const taking& it) {
    try {
        redis master(where, how);
        const reply seen = master.ask({"GET", it.key});
        if (seen.what == reply::kind::nothing) {
            return {"had no key", true};
        }
        if (seen.failed()) {
            return {seen.text, false};
        }
        const std::string channel = it.key + ":free";
        const reply done =
            it.at_once ? master.ask({"EVAL", remove_seen, "1", it.key, seen.text, channel})
                       : master.ask({"EVAL", replace_seen, "1", it.key, seen.text, it.other});
        if (done.failed()) {
            return {done.text, false};
        }
        return done.number == 1
                   ? std::pair<std::string, bool>{it.at_once ? "removed" : "taken", true}
               : done.number < 0 ? std::pair<std::string, bool>{"had no key", true}
                                 : std::pair<std::string, bool>{"has another holder now", false};
    } catch (const connection_error& error) {
        return {error.what(), false};
    }
}

// By the library's judgement of the memory record, which has another list of masters.
bool belongs_to_another_quorum(const redlock::master_health& one) {
    return one.state == redlock::master_state::ineligible && one.text.starts_with("not a member ");
}

std::string new_token() {
    std::random_device source;
    std::string out;
    while (out.size() < 40) {
        out += fmt::format("{:08x}", source());
    }
    return out;
}

bool agreed(const std::string& resource) {
    fmt::print("Type yes to release '{}': ", printable(resource));
    std::fflush(stdout);
    std::string line;
    return std::getline(std::cin, line) && line == "yes";
}

struct forced {
    std::string resource;
    bool yes = false;
    bool at_once = false;
};

constexpr std::string_view what_may_break =
    "\nThe holder is not asked. If it is alive, it learns of the release at its next renewal,\n"
    "within a third of its ttl. Others can acquire the lock after the current lease.\n\n";
constexpr std::string_view what_may_break_now =
    "\nThe holder is not asked. If it is alive, it continues until its next renewal, within a\n"
    "third of its ttl, so there may be two holders: only a resource that checks fencing tokens\n"
    "is safe from that. Use --now for a holder that is known to be dead.\n\n";

int force_release(const forced& wanted, const settings& common) {
    const auto& [resource, yes, at_once] = wanted;
    redlock::config how = config_of(common);
    require(redlock::validate_resource(resource), exit_code::usage);
    if (!yes && ::isatty(STDIN_FILENO) != 1) {
        throw failure(
            exit_code::usage, "cannot ask for confirmation without a terminal: add --yes");
    }
    redlock::lock_status found;
    redlock::health health;
    {
        session now(how);
        now.settle(need::all);
        found =
            now.wait([&, &name = resource](auto token) { // clang 14 captures no binding by itself
                return now.manager.async_query(name, std::move(token));
            });
        health = now.manager.get_health();
    }
    if (!common.json) {
        fmt::print("{}", text_of(resource, found));
    }
    if (!yes) {
        fmt::print("{}", at_once ? what_may_break_now : what_may_break);
        if (!agreed(resource)) {
            say("nothing was released");
            return static_cast<int>(exit_code::held);
        }
    }
    const taking it{key_of(how, resource), at_once, new_token()};
    std::vector<std::pair<std::string, bool>> done(how.masters.size());
    all_at_once(done.size(), [&](std::size_t i) {
        const redlock::master_health& judged = health.masters[i];
        done[i] = belongs_to_another_quorum(judged)
                      ? std::pair<std::string, bool>("not touched: " + judged.text, false)
                      : take_from(how.masters[i], how, it);
    });
    std::size_t without = 0;
    json masters = json::array();
    for (std::size_t i = 0; i < done.size(); ++i) {
        const auto& [words, gone] = done[i];
        const std::string name = to_string(how.masters[i]);
        without += gone ? 1U : 0U;
        if (common.json) {
            masters.push_back({{"master", name}, {"gone", gone}, {"text", words}});
        } else {
            fmt::print("  {}  {}\n", name, printable(words));
        }
    }
    const bool released = without > how.masters.size() / 2;
    if (common.json) {
        print({{"resource", resource}, {"released", released}, {"masters", std::move(masters)}});
    }
    if (!released) {
        say("a majority may still have the lock: a holder that is alive can restore it");
    }
    return released ? 0 : static_cast<int>(exit_code::no_quorum);
}

} // namespace

std::string key_of(const redlock::config& how, const std::string& resource) {
    return how.key_prefix.empty() ? resource : how.key_prefix + "{" + resource + "}";
}

void add_admin_commands(command_line& to) {
    CLI::App& lists = to.add(
        "list",
        "List the held locks of all masters",
        "  redlock list\n"
        "  redlock list --json | jq -r '.[] | select(.state == \"held\").resource'\n\n"
        "Reads the names of all keys with SCAN, a thousand per call; needs +scan in an ACL.");
    to.when(lists, [&to] { return list(to.common); });

    const auto wanted = std::make_shared<forced>();
    CLI::App& forces = to.add(
        "force-release",
        "Release a lock without its holder",
        "  redlock force-release backup         # shows the holder, and asks\n"
        "  redlock force-release --yes backup\n"
        "  redlock force-release --now backup   # its holder is known to be dead\n\n"
        "The lock is free when the current lease ends, with --now at once. A master whose memory\n"
        "record has another list of masters is not touched. Exits with 0 if a majority released\n"
        "it, 200 if you answered no, 201 if too few masters released it.");
    add_resource(forces, wanted->resource);
    forces.add_flag("--yes", wanted->yes, "Do not ask");
    forces.add_flag("--now", wanted->at_once, "Do not wait for the end of the lease");
    to.when(forces, [wanted, &to] { return force_release(*wanted, to.common); });
}

} // namespace cli
