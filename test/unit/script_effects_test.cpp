// What each script answers, what it leaves and what it tells, on real Lua: a table for each, with
// one case in a line.
//
//   argument=value ... | keys before | answer | keys after | what is published
//
// Of the arguments those that differ from the usual ones. `=` are the keys before. A key is
// name=value/ms left, name=# one of another type, name={member@score,...} a sorted set; `,` stands
// for a blank, and `none` for nothing. T is the present in us of the server's clock, M in ms, and
// $ the token of the caller; only a part of that is published. Without a word of it, the master
// has the record of one that remembers for 100 s. `error` is the answer that a key has another
// type, and `wrong` the same about one lock of a call for several.
#include "core/bytes/fair_queue_scripts.hpp"
#include "core/bytes/form_scripts.hpp"
#include "core/bytes/guarded_scripts.hpp"
#include "core/bytes/scripts.hpp"
#include "memory/server.hpp"
#include "support/test.hpp"

#include <iterator>
#include <regex>
#include <sstream>

namespace script_effects_test { namespace {

namespace core = redlock::core;
namespace memory = redlock::testing::memory;

constexpr std::int64_t present = 1'700'000'000'123'456;
constexpr std::string_view token = "me-0123456789abcdef";
const std::string usual_record = "epoch=4,run,-,T-100s,0,1d";

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, at);) {
        parts.push_back(part);
    }
    return parts;
}

// Words of a table that several scripts share, and what they stand for with this one.
using meanings = std::vector<std::pair<std::string, std::string>>;

std::string put_in(std::string table, const meanings& words) {
    for (const auto& [word, meaning] : words) {
        for (std::size_t at = 0; (at = table.find(word, at)) != std::string::npos;) {
            table.replace(at, word.size(), meaning);
            at += meaning.size();
        }
    }
    return table;
}

// T, T-1, T+5s and M+10 as numbers, and the token.
std::string expand(const std::string& text) {
    static const std::regex moment("([TM])(?:([+-]\\d+)(s)?)?");
    std::string out;
    auto rest = text.cbegin();
    for (std::smatch found; std::regex_search(rest, text.cend(), found, moment);) {
        const std::int64_t by = found[2].matched ? std::stoll(found[2]) : 0;
        out.append(rest, found[0].first);
        out += std::to_string(
            (found[1] == "T" ? present : present / 1000) + by * (found[3].matched ? 1'000'000 : 1));
        rest = found[0].second;
    }
    out.append(rest, text.cend());
    return put_in(std::move(out), {{"$", std::string(token)}});
}

std::string blanks(std::string text) {
    std::ranges::replace(text, ',', ' ');
    return text;
}

// One key of a line.
void put(memory::store& data, const std::string& said) {
    const std::size_t equals = said.find('=');
    const std::size_t slash = said.find('/');
    const std::string value = said.substr(equals + 1, slash - equals - 1);
    if (value == "none") {
        return;
    }
    memory::entry& made = data.put(said.substr(0, equals));
    if (slash != std::string::npos) {
        made.expires_ms = present / 1000 + std::stoll(said.substr(slash + 1));
    }
    if (value == "#") {
        made.is = memory::entry::type::hash;
    } else if (value.starts_with('{')) {
        made.is = memory::entry::type::sorted_set;
        for (const std::string& member : split(value.substr(1, value.size() - 2), ',')) {
            const std::size_t at = member.find('@');
            made.members.emplace_back(std::stod(member.substr(at + 1)), member.substr(0, at));
        }
        std::ranges::sort(made.members);
    } else {
        made.value = blanks(value);
    }
}

// The same way round.
std::string describe(const memory::entry& one) {
    std::string out = one.key + "=";
    if (one.is == memory::entry::type::hash) {
        out += "#";
    } else if (one.is == memory::entry::type::sorted_set) {
        for (const auto& [score, member] : one.members) {
            out += (out.back() == '=' ? "{" : ",") + member + "@"
                   + std::to_string(static_cast<std::int64_t>(score));
        }
        out += "}";
    } else {
        std::string value = one.value;
        std::ranges::replace(value, ' ', ',');
        out += value;
    }
    if (one.expires_ms != memory::entry::no_expiry) {
        out += "/" + std::to_string(one.expires_ms - present / 1000);
    }
    return out;
}

std::string in_order(std::vector<std::string> keys) {
    std::erase(keys, "");
    std::ranges::sort(keys);
    std::string out;
    for (const std::string& one : keys) {
        out += (out.empty() ? "" : " ") + one;
    }
    return out;
}

std::string trimmed(const std::string& text) {
    const std::size_t first = text.find_first_not_of(' ');
    return first == std::string::npos ? ""
                                      : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

// What shall be there then.
std::vector<std::string> after(const std::vector<std::string>& before, const std::string& said) {
    const auto name = [](const std::string& one) { return one.substr(0, one.find('=') + 1); };
    const std::vector<std::string> listed = split(said, ' ');
    const bool all_stay = !listed.empty() && listed.front() == "=";
    std::vector<std::string> keys;
    for (const std::string& one : before) {
        const bool named = std::ranges::any_of(
            listed, [&](const auto& other) { return name(other) == name(one); });
        if (!named && (all_stay || one.starts_with("epoch="))) {
            keys.push_back(one);
        }
    }
    std::ranges::copy_if(listed, std::back_inserter(keys), [](const auto& one) {
        return one != "=" && !one.ends_with("=none");
    });
    return keys;
}

// Whether it grants a lock, a place or a record, which a server at `maxmemory` may refuse. All that
// keeps, ends or lowers a lease does the same there.
bool needs_memory(std::string_view script) {
    return script == core::guarded_handshake.text || script == core::guarded_acquire.text
           || script == core::all_acquire.text || script == core::announced_acquire.text
           || script == core::shared_acquire.text || script == core::ticket_take.text;
}

void check(
    std::string_view script,
    const std::string& keys,
    const std::string& usual_arguments,
    const std::string& table,
    bool full = false) {
    if (!full) {
        check(script, keys, usual_arguments, table, true);
    }
    memory::lua_machine lua;
    std::string heading;
    for (const std::string& line : split(table, '\n')) {
        if (line.find('|') == std::string::npos) {
            heading = trimmed(line);
            continue;
        }
        CAPTURE(heading, line, full);
        std::vector<std::string> parts = split(line, '|');
        REQUIRE(parts.size() <= 5);
        parts.resize(5);
        std::ranges::transform(parts, parts.begin(), trimmed);

        memory::server it(lua);
        it.full = full;
        it.declared_keys_only = true;
        std::vector<std::string> before;
        if (parts[1].find("epoch=") == std::string::npos) {
            before.push_back(expand(usual_record));
        }
        for (const std::string& one : split(expand(parts[1]), ' ')) {
            before.push_back(one);
        }
        std::erase(before, "");
        std::erase(before, "epoch=none");
        for (const std::string& one : before) {
            put(it.data, one);
        }
        std::string told;
        std::int64_t listeners = 0;
        it.tell = [&](std::string_view channel, std::string_view text) {
            told += std::string(told.empty() ? "" : " ").append(channel) + "<-";
            told += text == token.substr(0, 16) ? "$" : text;
            return listeners;
        };

        std::vector<std::string> words{"EVAL", std::string(script)};
        const std::vector<std::string> names = split(keys, ' ');
        words.push_back(std::to_string(names.size()));
        words.insert(words.end(), names.begin(), names.end());
        std::vector<std::string> changed = split(parts[0], ' ');
        it.refuses_publish = std::erase(changed, "publish=refused") != 0;
        listeners = std::erase(changed, "listeners=2") != 0 ? 2 : 0;
        for (std::string argument : split(usual_arguments, ' ')) {
            const std::string name = argument.substr(0, argument.find('=') + 1);
            const auto found = std::ranges::find_if(
                changed, [&](const auto& one) { return one.starts_with(name); });
            if (found != changed.end()) {
                argument = *found;
                changed.erase(found);
            }
            const std::string value = expand(argument.substr(argument.find('=') + 1));
            words.push_back(value == "none" ? "" : value);
        }
        REQUIRE(changed.empty()); // each is an argument
        const std::vector<std::string_view> views(words.begin(), words.end());
        std::string answer = it.execute(views, present).describe();
        std::ranges::replace(answer, '\n', ' ');
        const std::string expected = expand(parts[2]);
        const std::vector<std::string> kept = after(before, expand(parts[3]));
        if (full && needs_memory(script)) {
            const bool refused = answer.find("OOM command not allowed") != std::string::npos;
            const bool grants = std::ranges::any_of(kept, [&](const std::string& one) {
                return !one.empty() && std::ranges::find(before, one) == before.end();
            });
            CHECK((refused || !grants));
            if (refused) {
                CHECK(told.empty());
                continue;
            }
        }
        if (answer.starts_with("(error) WRONGTYPE")) {
            answer = "error";
        }
        answer = put_in(
            std::move(answer),
            {{"WRONGTYPE Operation against a key holding the wrong kind of value", "wrong"}});
        CHECK(answer == expected);

        std::vector<std::string> left;
        for (const memory::entry& one : it.data.entries()) {
            if (one.expires_ms >= present / 1000) {
                left.push_back(describe(one));
            }
        }
        CHECK(in_order(left) == in_order(kept));
        CHECK(told == parts[4]);
    }
}

// An acquisition: WON is what it answers and leaves.
const std::string only_in_time_and_remembered = R"(
it comes in time, or too late
not_after=T   | | WON
not_after=T-1 | | -1 0 T | =
not_after=1   | | -1 0 T | =
the quarantine is the longest that was asked for
 | epoch=4,run,-,T-29999999,0,1d   | -2 1 T        | =
 | epoch=4,run,-,T-30s,0,1d        | WON
 | epoch=4,run,-,T-60s,60000000,1d | WON
 | epoch=4,run,-,T,0,1d            | -2 30000000 T | =
a record of another server, from the future or of another format is none
 | epoch=none              | -4 30000000 T | =
 | epoch=4,else,-,T-100s,0,1d | -4 30000000 T | =
 | epoch=4,run,-,T+1,0,1d     | -4 30000000 T | =
 | epoch=2,run,-,T-100s,0  | -4 30000000 T | =
)";

// An extension or a heal, of what is missing.
const std::string missing = R"(
where it is missing, it matters whether the master may have forgotten it
 | BEFORE epoch=4,run,-,T-30s,0,1d        | MISSING
 | BEFORE epoch=4,run,-,T-29999999,0,1d   | -2 0 T | =
 | BEFORE epoch=4,run,-,T-59s,60000000,1d | -2 0 T | =
 | BEFORE epoch=none                   | -2 0 T | =
 | BEFORE epoch=4,else,-,T-100s,0,1d      | OTHER_RECORD
 | BEFORE epoch=2,run,-,T-100s,0       | -2 0 T | =
q=0 | BEFORE epoch=4,run,-,T,0,1d         | MISSING
)";

// An extension is not executed under the record of another generation of members.
const std::string another_record = R"(
under another record nothing is executed
 | a=$/9 epoch=4,run:1234abcd,-,T-100s,0,1d | -4 0 T | =
)";

// The answers to extensions of one lock, said by a script for several.
const meanings in_a_call_for_several{
    {"| 1 0 T", "| 1 T"},
    {"| 0 4000 T", "| 1 T 1 4000"},
    {"| 0 -1 T", "| 1 T 1 -1"},
    {"| -2 0 T", "| 2 T 1 -2"},
    {"| -3 0 T", "| 1 T 1 -3"},
    {"| error", "| 1 T 1 wrong"}};

// A heal that nobody has told when it is late.
const std::string no_limit = R"(
without a limit it is late
not_after=0 | a=$/4000 b=$/4000 | -1 0 T | =
)";

TEST_CASE("what the plain protocol does") {
    check(
        core::compare_and_extend_each.text,
        "a",
        "ttl=10000 token=$",
        R"(
an extension never shortens
 | a=$/4000            | 1 0         | a=$/10000
 | a=$/20000           | 1 0         | =
 | a=$                 | 1 0         | a=$/10000
 | a=other/4000        | 1 0 1 4000  | =
 |                     | 1 0 1 -3    | =
)");
    check(
        core::compare_and_extend_each.text,
        "a b c",
        "ttl=10000 of_a=$ of_b=one of_c=two",
        R"(
each has a token of its own, and the result of one does not affect the others
 | a=$/4000 b=one/20000 c=two/9     | 1 0              | a=$/10000 b=one/20000 c=two/10000
 | a=#/9 b=other/4000 c=two/9       | 1 0 1 wrong 2 4000 | = c=two/10000
)");
}

TEST_CASE("what a handshake does") {
    check(
        core::guarded_handshake.text,
        "epoch",
        "run=run promoted=- q=30000000 stepped=0 id=2e",
        R"(
the memory of a server without a record of its own begins now
                      | epoch=none                | 1 T+30s T 4 run - T 30000000 2e | epoch=4,run,-,T,30000000,2e
                      | epoch=4,else,-,T-100s,0,1d   | 1 T+30s T 4 run - T 30000000 2e | epoch=4,run,-,T,30000000,2e
stepped=1             | epoch=4,run,-,T-100s,0,1d    | 1 T+30s T 4 run - T 30000000 2e | epoch=4,run,-,T,30000000,2e
                      | epoch=4,run,-,T+1,0,1d       | 1 T+30s T 4 run - T 30000000 2e | epoch=4,run,-,T,30000000,2e
promoted=f00          | epoch=4,run,-,T-100s,0,1d    | 1 T+30s T 4 run f00 T 30000000 2e | epoch=4,run,f00,T,30000000,2e
one with a record goes on from there
                      | epoch=4,run,-,T-100s,0,1d    | 0 T-70s T 4 run - T-100s 30000000 2e | epoch=4,run,-,T-100s,30000000,2e
                      | epoch=4,run,-,T,30000000,1d  | 0 T+30s T 4 run - T 30000000 1d | =
                      | epoch=4,run,f00,T-100s,30000000,1d | 0 T-70s T 4 run f00 T-100s 30000000 1d | =
promoted=f00          | epoch=4,run,f00,T-100s,30000000,1d | 0 T-70s T 4 run f00 T-100s 30000000 1d | =
without a list, a client that has none leaves no quarantine, and ends none
stepped=3             | epoch=none                | 1 T T 4 run - T 0 2e | epoch=4,run,-,T,0,2e
stepped=3             | epoch=4,run,-,T-100s,20000000,1d | 0 T-80s T 4 run - T-100s 20000000 1d | =
the longest quarantine counts
q=60000000            | epoch=4,run,-,T-40s,30000000,1d | 2 T+20s T 4 run - T-40s 60000000 2e | epoch=4,run,-,T-40s,60000000,2e
                      | epoch=4,run,-,T-40s,60000000,1d | 0 T+20s T 4 run - T-40s 60000000 1d | =
                      | epoch=4,else,-,T-100s,60000000,1d | 1 T+60s T 4 run - T 60000000 2e | epoch=4,run,-,T,60000000,2e
one of another format is left alone
                      | epoch=3,run,-,T-100s,0,1d | -1 0 T | =
)");
    const meanings ids{
        {"OLD", "0123456789abcdef0123456789abcde1"},
        {"ODD", "0123456789abcdef0123456789abcde2"},
        {"NEW", "fedcba9876543210fedcba91234abcde"}};
    check(
        core::guarded_handshake.text,
        "epoch",
        put_in("run=run promoted=- q=30000000 stepped=0 id=NEW list=06d30", ids),
        put_in(
            R"(
a list without the id of a record is written where there is none
                      | epoch=none | 1 T+30s T 4 run - T 30000000 NEW06d30 | epoch=4,run,-,T,30000000,NEW06d30
                      | epoch=4,run,-,T-100s,30000000,OLD | 0 T-70s T 4 run - T-100s 30000000 NEW06d30 | epoch=4,run,-,T-100s,30000000,NEW06d30
                      | epoch=4,run,-,T-100s,30000000,OLD16d31 | 0 T-70s T 4 run - T-100s 30000000 OLD16d31 | =
a list has a quarantine, whoever asks
list=- stepped=3      | epoch=4,run,-,T-100s,20000000,OLD16d31 | 2 T-70s T 4 run - T-100s 30000000 NEW16d31 | epoch=4,run,-,T-100s,30000000,NEW16d31
)",
            ids));
    check(
        core::guarded_handshake.text,
        "epoch",
        put_in(
            "run=run promoted=- q=30000000 stepped=0 id=NEW list=26d32 was=OLD16d31 with=0", ids),
        put_in(
            R"(
a list of new members takes the place of the record that was read, and changes what a script compares
                      | epoch=4,run,-,T-100s,30000000,OLD16d31 | 0 T-70s T 4 run:234abcde - T-100s 30000000 NEW26d32 | epoch=4,run:234abcde,-,T-100s,30000000,NEW26d32
a final one also begins where the quarantine ends now
list=36d32            | epoch=4,run,-,T-100s,30000000,OLD16d31 | 0 T T 4 run:234abcde - T-30s 30000000 NEW36d32 | epoch=4,run:234abcde,-,T-30s,30000000,NEW36d32
a quarantine that comes with it is recorded with it, and only a final one of new members shortens it
with=40000000         | epoch=4,run,-,T-100s,30000000,OLD16d31 | 2 T-60s T 4 run:234abcde - T-100s 40000000 NEW26d32 | epoch=4,run:234abcde,-,T-100s,40000000,NEW26d32
with=40000000         | epoch=4,run,-,T-100s,30000000,ODD16d31 | 0 T-70s T 4 run - T-100s 30000000 ODD16d31 | =
list=36d32 with=40000000 | epoch=4,run,-,T-100s,50000000,OLD16d31 | 0 T T 4 run:234abcde - T-40s 40000000 NEW36d32 | epoch=4,run:234abcde,-,T-40s,40000000,NEW36d32
list=36d32 with=20000000 | epoch=4,run,-,T-100s,50000000,OLD16d31 | 0 T T 4 run:234abcde - T-30s 30000000 NEW36d32 | epoch=4,run:234abcde,-,T-30s,30000000,NEW36d32
it takes the place of no other one, nor of one that was lost
                      | epoch=none | 1 T+30s T 4 run - T 30000000 NEW | epoch=4,run,-,T,30000000,NEW
stepped=1             | epoch=4,run,-,T-100s,30000000,OLD16d31 | 1 T+30s T 4 run - T 30000000 NEW16d31 | epoch=4,run,-,T,30000000,NEW16d31
)",
            ids));
}

TEST_CASE("what an acquisition does") {
    const std::string not_executed = R"(
a master that refuses the call says so of a lock that is busy, too
              | a=$/4000 epoch=4,run,-,T-29999999,0,1d  | -2 1 T        | =
being late goes first
not_after=T-1 | epoch=none                           | -1 0 T        | =
)";
    check(
        core::guarded_acquire.text,
        "epoch a a:f",
        "ttl=10000 fence_ttl=90000 first=0 earliest=0 token=$ run=run q=30000000 not_after=0",
        R"(
without a counter that it remembers, it counts from its clock
 | a:f=T-70000001/1000 | 1 T T | a=$/10000 a:f=T/90000
it counts from the first counter, if that is ahead of its clock and by no more than is allowed
first=T+1 earliest=T   |                     | 1 T T+1  | a=$/10000 a:f=T+1/90000
first=T+5s earliest=T  | a:f=abc/1000        | 1 T T+5s | a=$/10000 a:f=T+5s/90000
first=T+5s earliest=1  | a:f=T-70000001/1000 | 1 T T+5s | a=$/10000 a:f=T+5s/90000
first=T+5s earliest=T+1 |                    | 1 T T    | a=$/10000 a:f=T/90000
first=T+5s earliest=1  | a:f=T-70s/1000      | 1 T T-69999999 | a=$/10000 a:f=T-69999999/90000
a counter from behind the quarantine is counted on
 | a:f=T-70s/1000      | 1 T T-69999999 | a=$/10000 a:f=T-69999999/90000
so is any where nothing can have been forgotten
q=0 | epoch=4,run,-,0,0,1d a:f=abc/1000 | 1 T 1  | a=$/10000 a:f=1/90000
q=0 | epoch=4,run,-,0,0,1d a:f=41/1000  | 1 T 42 | a=$/10000 a:f=42/90000
q=0 | epoch=4,run,-,0,0,1d a:f=41.0/9   | 1 T 42 | a=$/10000 a:f=42/90000
it is busy, also for its owner, and for good where no end is set
 | a=other/4000          | 1 T -4002 | =
 | a=$/4000              | 1 T -4002 | =
 | a=other               | 1 T -1    | =
an error leaves nothing behind
 | a:f=#                 | 1 T wrong | =
)" + not_executed
            + put_in(only_in_time_and_remembered, {{"WON", "1 T T | a=$/10000 a:f=T/90000"}}));
    check(
        core::guarded_acquire.text,
        "epoch a",
        "ttl=10000 fence_ttl=0 token=$ run=run q=30000000 not_after=0",
        R"(
without fencing the counter is left alone
 |              | 1 T        | a=$/10000
it is busy, also for its owner, and for good where no end is set
 | a=other/4000 | 1 T 1 4000 | =
an error leaves nothing behind
ttl=0 |         | 1 T 1 ERR invalid expire time in 'set' command | =
)" + not_executed
            + put_in(only_in_time_and_remembered, {{"WON", "1 T | a=$/10000"}}));
}

TEST_CASE("what acquisitions of several locks in one call do") {
    check(
        core::guarded_acquire.text,
        "epoch a a:f b b:f c c:f",
        "ttl=10000 fence_ttl=90000 first=0 earliest=0 of_a=$ of_b=one of_c=two run=run q=30000000 "
        "not_after=0",
        put_in(
            R"(
each has a token and a counter of its own
 | a:f=T-70s/9 b:f=abc/9 c:f=T+5s/9 | 1 T T-69999999 T T+5000001 | B a=$/10000 a:f=T-69999999/90000 c=two/10000 c:f=T+5000001/90000
the result of one does not affect the others
 | a=other/4000 b:f=#          | 1 T -4002 wrong T      | = C
q=0 | epoch=4,run,-,0,0,1d a:f=41/9 b=other/4000 b:f=41/9 | 1 T 42 -4002 1 | = a=$/10000 a:f=42/90000 c=two/10000 c:f=1/90000
the master is asked once for all
              | a=other/4000 epoch=4,run,-,T,0,1d | -2 30000000 T | =
)",
            {{" A", " a=$/10000 a:f=T/90000"},
             {" B", " b=one/10000 b:f=T/90000"},
             {" C", " c=two/10000 c:f=T/90000"}}));
    check(
        core::guarded_acquire.text,
        "epoch a a:f a a:f",
        "ttl=10000 fence_ttl=90000 first=0 earliest=0 of_a=$ again=one run=run q=30000000 "
        "not_after=0",
        R"(
of the same lock the first gets it
 | a:f=T+5s/9          | 1 T T+5000001 -10002 | a=$/10000 a:f=T+5000001/90000
)");
    check(
        core::guarded_acquire.text,
        "epoch a b c",
        "ttl=10000 fence_ttl=0 of_a=$ of_b=one of_c=two run=run q=30000000 not_after=0",
        put_in(
            R"(
each has a token of its own, and counters are left alone
 |                     | 1 T | A B C
the result of one does not affect the others, and the results are in their order
 | a=other/4000                | 1 T 1 4000          | = B C
the master is asked once for all
not_after=T   | b=other/4000                   | 1 T 2 4000    | = A C
)",
            {{" A", " a=$/10000"}, {" B", " b=one/10000"}, {" C", " c=two/10000"}}));
}

TEST_CASE("what a raise does") {
    check(
        core::all_raise.text,
        "a a:f",
        "token=$ counter=50 fence_ttl=90000",
        R"(
it brings the counter up
 | a=$/4000              | 1 50 0 | = a:f=50/90000
 | a=$/4000 a:f=50/1000  | 1 50 0 | =
 | a=$/4000 a:f=50.0/9   | 1 50 0 | =
counter=1 | a=$/4000 a:f=abc/9 | 1 1 0 | = a:f=1/90000
one that is ahead it tells
 | a=$/4000 a:f=51/1000  | 0 51 0 | =
where the lock is not ours, it does nothing
 | a=other/4000 a:f=7/9  | 0 0 0  | =
 | a:f=7/9               | 0 0 0  | =
)");
}

TEST_CASE("what an acquisition of several resources does") {
    check(
        core::all_acquire.text,
        "a a:f b b:f epoch",
        "token=$ ttl=10000 run=run q=30000000 not_after=0 fence_ttl=90000 first=0 earliest=0",
        R"(
the counter of all is one more than the largest
 | a:f=T-20s/9 b:f=T-10s/9       | 1 T-9999999 T  | a=$/10000 b=$/10000 a:f=T-9999999/90000 b:f=T-9999999/90000
 | a:f=T-70s/9 b:f=T-70s/9       | 1 T-69999999 T | a=$/10000 b=$/10000 a:f=T-69999999/90000 b:f=T-69999999/90000
where one of them is not remembered, it is the clock at least
 | a:f=T-10s/9                   | 1 T T | a=$/10000 b=$/10000 a:f=T/90000 b:f=T/90000
 | a:f=T+5s/9                    | 1 T+5000001 T  | a=$/10000 b=$/10000 a:f=T+5000001/90000 b:f=T+5000001/90000
then it is the first counter, if that is ahead of the clock and by no more than is allowed
first=T+1 earliest=T    | a:f=T-10s/9 | 1 T+1 T | a=$/10000 b=$/10000 a:f=T+1/90000 b:f=T+1/90000
first=T+5s earliest=T+1 | a:f=T-10s/9 | 1 T T   | a=$/10000 b=$/10000 a:f=T/90000 b:f=T/90000
where nothing can have been forgotten, it is counted from one
q=0 | epoch=4,run,-,0,0,1d a:f=abc/9 | 1 1 T  | a=$/10000 b=$/10000 a:f=1/90000 b:f=1/90000
without fencing the counters are left alone
fence_ttl=0 | a:f=7/9           | 1 0 T    | = a=$/10000 b=$/10000
one that is busy is enough, and of several the last counts
 | a=other/4000              | 0 4000 0 | =
 | a=other/4000 b=other/6000 | 0 6000 0 | =
 | a=$/0                     | 0 0 0    | =
 | a=other b=other/4000      | 0 -1 0   | =
 | a=other/4000 b=other      | 0 -1 0   | =
an error leaves nothing behind
 | b:f=# | error | =
)"
            + put_in(
                only_in_time_and_remembered,
                {{"WON", "1 T T | a=$/10000 b=$/10000 a:f=T/90000 b:f=T/90000"}}));
    check(
        core::all_raise.text,
        "a a:f b b:f",
        "token=$ counter=50 fence_ttl=90000",
        R"(
it brings all counters up
 | a=$/4000 b=$/4000                     | 1 50 0 | = a:f=50/90000 b:f=50/90000
 | a=$/4000 b=$/4000 a:f=50/9 b:f=50/9   | 1 50 0 | =
 | a=$/4000 b=$/4000 a:f=50/9 b:f=7/9    | 1 50 0 | = a:f=50/90000 b:f=50/90000
counter=0 | a=$/9 b=$/9 a:f=abc/9        | 1 0 0  | =
or none, where one is ahead
 | a=$/4000 b=$/4000 a:f=51/9 b:f=7/9    | 0 51 0 | =
 | a=$/4000 b=$/4000 a:f=7/9 b:f=51/9    | 0 51 0 | =
where one is not ours, it does nothing
 | a=other/4000 b=$/4000 a:f=7/9 b:f=7/9 | 0 0 0  | =
 | a=$/4000 b=other/4000 a:f=7/9 b:f=7/9 | 0 0 0  | =
)");
}

TEST_CASE("what an acquisition that announces itself does") {
    check(
        core::announced_acquire.text,
        "a a:f epoch a:i",
        "token=$ ttl=10000 run=run q=30000000 not_after=0 fence_ttl=90000 first=0 earliest=0 "
        "intent_ttl=2000 intent=mine",
        R"(
any intent goes
 | a:i=mine/900    | 1 T T | a=$/10000 a:f=T/90000
 | a:i=another/900 | 1 T T | a=$/10000 a:f=T/90000
readers have it, and new ones are kept out
 | a=readers/4000            | 0 4000 T | = a:i=mine/2000
 | a=readers/4000 a:i=else/9 | 0 4000 T | = a:i=mine/2000
without a counter that it remembers, it counts from its clock
 | a:f=T-70000001/1000 | 1 T T | a=$/10000 a:f=T/90000
 | a:f=T-70s/1000      | 1 T-69999999 T | a=$/10000 a:f=T-69999999/90000
 | a:f=T+5s/1000       | 1 T+5000001 T  | a=$/10000 a:f=T+5000001/90000
first=T+1 earliest=T    |                | 1 T+1 T        | a=$/10000 a:f=T+1/90000
first=T+1 earliest=T+1  |                | 1 T T          | a=$/10000 a:f=T/90000
q=0 | epoch=4,run,-,0,0,1d a:f=abc/1000 | 1 1 T  | a=$/10000 a:f=1/90000
without fencing the counter is left alone
fence_ttl=0 |            | 1 0 T | a=$/10000
fence_ttl=0 | a:f=7/1000 | 1 0 T | = a=$/10000
it is busy, also for its owner, and for good where no end is set
 | a=$/4000     | 0 4000 T | =
 | a=other      | 0 -1 T   | =
an error leaves nothing behind
 | a:f=#   | error | =
)" + put_in(only_in_time_and_remembered, {{"WON", "1 T T | a=$/10000 a:f=T/90000"}}));
}

TEST_CASE("what an acquisition of a reader does") {
    check(
        core::shared_acquire.text,
        "a a:r epoch a:i",
        "token=$ ttl=10000 run=run q=30000000 not_after=0",
        R"(
it enters itself, and the lock has the value of readers until their last lease has ended
 | a=readers/9 a:r={x@M-1,y@M,z@M+8}/9       | 1 0 T | a=readers/10001 a:r={y@M,z@M+8,$@M+10000}/10001
 | a=readers/10000 a:r={x@M+9999}/10000      | 1 0 T | a=readers/10001 a:r={x@M+9999,$@M+10000}/10001
what was entered before the lock was free does not count any more
 | a:r={x@M-1,y@M,z@M+8}/4000                | 1 0 T | a=readers/10001 a:r={$@M+10000}/10001
 | a:r=#                                     | 1 0 T | a=readers/10001 a:r={$@M+10000}/10001
one that has it alone or waits for that keeps it out
 | a=other/4000 a:i=mine/900       | 0 4000 0 | =
 | a=other                         | 0 -1 0   | =
 | a:i=mine/900                    | 0 900 0  | =
 | a:i=mine                        | 0 -1 0   | =
an error leaves nothing behind
 | a=readers/9 a:r=#     | error | =
)"
            + put_in(
                only_in_time_and_remembered,
                {{"WON", "1 0 T | a=readers/10001 a:r={$@M+10000}/10001"}}));
}

TEST_CASE("what an extension and a heal of one resource do") {
    const std::string of_both = R"(
it never shortens
 | a=$/20000 a:f=50/9 | 1 0 T | a=$/20000 a:f=50/90000
the counter is brought up to the token, and never lowered
 | a=$/4000 a:f=50.0/9   | 1 0 T | a=$/10000 a:f=50.0/90000
 | a=$/4000 a:f=51/9     | 1 0 T | a=$/10000 a:f=51/90000
counter=1 | a=$/4000 a:f=abc/9 | 1 0 T | a=$/10000 a:f=1/90000
what is another's stays so
 | a=other/4000 a:f=7/9 | 0 4000 T | =
 | a=other a:f=7/9      | 0 -1 T   | =
it comes in time, or too late
not_after=T   | a=$/4000 | 1 0 T  | a=$/10000 a:f=50/90000
not_after=T-1 | a=$/4000 | -1 0 T | =
not_after=1   | a=$/4000 | -1 0 T | =
an error leaves nothing behind
 | a=$/4000 a:f=# | error | =
)";
    const std::string without_token = R"(
without a token the counter is left alone
counter=0 | a=$/4000 a:f=7/9   | 1 0 T | a=$/10000 a:f=7/9
)";
    const std::string healed = "2 0 T | = a=$/10000 a:f=50/90000";
    const std::string heal =
        "token=$ ttl=10000 counter=50 fence_ttl=90000 run=run q=30000000 not_after=T+5s";
    const meanings extending{
        {"BEFORE", "a:f=7/9"}, {"MISSING", "-3 0 T | ="}, {"OTHER_RECORD", "-4 0 T | ="}};
    const meanings healing{
        {"BEFORE", "a:f=7/9"}, {"MISSING", healed}, {"OTHER_RECORD", "-2 0 T | ="}};
    const std::string of_one = of_both + without_token + missing;
    check(
        core::guarded_extend.text,
        "epoch a a:f",
        "ttl=10000 fence_ttl=90000 token=$ counter=50 run=run q=30000000 not_after=0",
        put_in(put_in(of_both + missing + another_record, extending), in_a_call_for_several));
    check(
        core::guarded_extend.text,
        "epoch a",
        "ttl=10000 fence_ttl=0 token=$ run=run q=30000000 not_after=0",
        R"(
it never shortens
 | a=$/9999           | 1 T        | a=$/10000
 | a=$/20000          | 1 T        | =
without a token the counter is left alone
 | a=$/4000           | 1 T        | a=$/10000
 | a=$/4000 a:f=7/9   | 1 T        | a=$/10000 a:f=7/9
what is another's stays so
 | a=other/4000       | 1 T 1 4000 | =
it comes in time, or too late
not_after=T   | a=$/4000 | 1 T     | a=$/10000
not_after=T-1 | a=$/4000 | -1 0 T  | =
an error leaves nothing behind
 | a=#                | 1 T 1 wrong | =
)" + put_in(put_in(missing, extending), in_a_call_for_several));
    const std::string found = R"(
a key that it finds counts only where the master can have forgotten nothing
 | a=$/4000 a:f=7/9 epoch=4,run,-,T-29999999,0,1d      | -2 0 T | =
 | a=$/4000 a:f=7/9 epoch=4,run,-,T-30s,0,1d           | 1 0 T  | a=$/10000 a:f=50/90000
)";
    check(core::all_heal.text, "a a:f epoch", heal, put_in(of_one + no_limit + found, healing));
}

TEST_CASE("what extensions of several locks in one call do") {
    check(
        core::guarded_extend.text,
        "epoch a a:f b b:f c c:f",
        "ttl=10000 fence_ttl=90000 of_a=$ of_b=one of_c=two counter_a=50 "
        "counter_b=51 counter_c=52 "
        "run=run q=30000000 not_after=0",
        put_in(
            R"(
each has a token and a counter of its own
 | a=$/9999 b=one/20000 c=two/9 a:f=50/9 b:f=50/9 c:f=abc/9 | 1 T | A b=one/20000 b:f=51/90000 C
the result of one does not affect the others, and the results are in their order
 | a=$/9 a:f=# b=one/9 c=other/0        | 1 T 1 wrong 3 0      | = B
whether the master may have forgotten comes first, and matters to those that are missing
 | a=$/9 c=other/7 epoch=4,run,-,T-29999999,0,1d | 2 T 2 -2 3 7   | = A
they come in time, or too late
not_after=T   | a=$/9 b=other/7 c=two/9 | 1 T 2 7  | = A C
not_after=T-1 | a=$/9 b=other/7 c=two/9 | -1 0 T   | =
)",
            {{" A", " a=$/10000 a:f=50/90000"},
             {" B", " b=one/10000 b:f=51/90000"},
             {" C", " c=two/10000 c:f=52/90000"}}));
    check(
        core::guarded_extend.text,
        "epoch a b",
        "ttl=10000 fence_ttl=0 of_a=$ of_b=one run=run q=30000000 not_after=0",
        R"(
each has a token of its own, and counters are left alone
 | a=$/9 b=one/9 a:f=7/9  | 1 T                | = a=$/10000 b=one/10000
the result of one does not affect the other, and the results are in their order
 | a=other/4000 b=one/9   | 1 T 1 4000         | = b=one/10000
)");
}

TEST_CASE("what an extension and a heal of several resources do") {
    const std::string of_both = R"(
it shortens none
 | a=$/9999 b=$/20000 a:f=50/9 b:f=50/9 | 1 0 T | a=$/10000 b=$/20000 a:f=50/90000 b:f=50/90000
the counters are brought up to the token, and never lowered
 | a=$/9 b=$/9 a:f=51/9 b:f=50.0/9 | 1 0 T | a=$/10000 b=$/10000 a:f=51/90000 b:f=50.0/90000
counter=1 | a=$/9 b=$/9 a:f=abc/9  | 1 0 T | a=$/10000 b=$/10000 a:f=1/90000 b:f=1/90000
counter=0 | a=$/9 b=$/9 a:f=7/9    | 1 0 T | a=$/10000 b=$/10000 a:f=7/9
one that is another's is enough for none
 | a=other/4000 b=$/6000 | 0 4000 T | =
 | a=$/4000 b=other/6000 | 0 6000 T | =
it comes in time, or too late
not_after=T   | a=$/9 b=$/9 | 1 0 T  | a=$/10000 b=$/10000 a:f=50/90000 b:f=50/90000
not_after=T-1 | a=$/9 b=$/9 | -1 0 T | =
not_after=1   | a=$/9 b=$/9 | -1 0 T | =
those that are missing are made together, or none
 | a=$/9 | MISSING
an error leaves nothing behind
 | a=$/9 b=$/9 a:f=7/9 b:f=# | error | =
)";
    const std::string healed = "2 0 T | a=$/10000 b=$/10000 a:f=50/90000 b:f=50/90000";
    check(
        core::all_extend.text,
        "a a:f b b:f epoch",
        "token=$ ttl=10000 counter=50 fence_ttl=90000 run=run q=30000000 not_after=0",
        put_in(
            of_both + missing + another_record,
            {{"BEFORE", "b=$/9"}, {"MISSING", "-3 0 T | ="}, {"OTHER_RECORD", "-4 0 T | ="}}));
    check(
        core::all_heal.text,
        "a a:f b b:f epoch",
        "token=$ ttl=10000 counter=50 fence_ttl=90000 run=run q=30000000 not_after=T+5s",
        put_in(
            of_both + missing + no_limit + R"(
keys that it finds count only where the master can have forgotten nothing
 | a=$/9 b=$/9 epoch=4,run,-,T-29999999,0,1d | -2 0 T | =
)",
            {{"BEFORE", "b=$/9"}, {"MISSING", healed}, {"OTHER_RECORD", "-2 0 T | ="}}));
}

TEST_CASE("what an extension and a heal of a reader do") {
    const std::string of_both = R"(
it never shortens, and leaves the other readers alone
 | a=readers/1 a:r={$@M}/9               | 1 0 T | a=readers/10001 a:r={$@M+10000}/10001
 | a=readers/7 a:r={w@M-1,$@M+5,x@M+6}/9 | 1 0 T | a=readers/10001 a:r={x@M+6,$@M+10000}/10001
 | a=readers/20001 a:r={$@M+5,x@M+6}/9   | 1 0 T | = a:r={x@M+6,$@M+10000}/20001
 | a=readers/20001 a:r={$@M+20000}/20001 | 1 0 T | =
 | a=readers/9 a:r={$@M+20000}/9         | 1 0 T | a=readers/20001 a:r={$@M+20000}/20001
another has it
 | a=other/4000 a:r={$@M+5}/9  | 0 4000 T | =
 | a=other a:r={$@M-1}/9       | 0 -1 T   | =
it comes in time, or too late
not_after=T   | a=readers/6 a:r={$@M+5}/9 | 1 0 T  | a=readers/10001 a:r={$@M+10000}/10001
not_after=T-1 | a=readers/6 a:r={$@M+5}/9 | -1 0 T | =
not_after=1   | a=readers/6 a:r={$@M+5}/9 | -1 0 T | =
an error leaves nothing behind
 | a=readers/9 a:r=# | error | =
)";
    const std::string before = "a=readers/9 a:r={$@M-1,x@M+8}/9";
    check(
        core::shared_extend.text,
        "a a:r epoch",
        "token=$ ttl=10000 run=run q=30000000 not_after=0 channel=free",
        of_both + R"(
an entry counts only while readers have the lock
                | a:r={$@M+5}/9            | -3 0 T | =
one that had it alone becomes a reader, keeps what is left of its lease, and says so
                | a=$                      | 1 0 T | a=readers/10001 a:r={$@M+10000}/10001 | free<-$
                | a=$/20000                | 1 0 T | a=readers/20001 a:r={$@M+20000}/20001 | free<-$
                | a=$/4000 a:r={$@M-9,x@M+9}/9 | 1 0 T | a=readers/10001 a:r={$@M+10000}/10001 | free<-$
                | a=$/4000 a:r=#           | 1 0 T | a=readers/10001 a:r={$@M+10000}/10001 | free<-$
publish=refused | a=$/4000                 | 1 1 T | a=readers/10001 a:r={$@M+10000}/10001 |
but not where the key may be that of a late SET
                | a=$/4000 epoch=none                    | -2 0 T | =
                | a=$/4000 epoch=4,run,-,T-29999999,0,1d | -2 0 T | =
its lease goes on
channel=none    | a=$/4000                 | 1 0 T | a=readers/10001 a:r={$@M+10000}/10001 |
)"
            + put_in(
                missing + another_record,
                {{"BEFORE", before}, {"MISSING", "-3 0 T | ="}, {"OTHER_RECORD", "-4 0 T | ="}}));
    check(
        core::shared_heal.text,
        "a a:r epoch",
        "token=$ ttl=10000 run=run q=30000000 not_after=T+5s",
        of_both + R"(
another has it, even if it has our token
 | a=$/4000 a:r={$@M+5}/9    | 0 4000 T | =
it enters one that is missing; what was entered before the lock was free does not count
 | a:r={$@M+5,x@M+8}/9   | 2 0 T | a=readers/10001 a:r={$@M+10000}/10001
 | a:r=#                 | 2 0 T | a=readers/10001 a:r={$@M+10000}/10001
)"
            + put_in(
                missing,
                {{"BEFORE", before},
                 {"MISSING", "2 0 T | a=readers/10001 a:r={x@M+8,$@M+10000}/10001"},
                 {"OTHER_RECORD", "-2 0 T | ="}}));
}

TEST_CASE("what a release does") {
    const std::string of_one = R"(
it removes what is its own, levels the counter and tells that
                | a=$/4000 a:f=50.0/9 | 1 0 T | a:f=50.0/9   | free<-$
counter=1       | a=$/4000 a:f=abc/9  | 1 0 T | a:f=1/90000  | free<-$
where it is another's or missing, nothing is done
                | a=other/4000 a:f=7/9 | 0 0 T  | = |
                | a:f=7/9              | -1 0 T | = |
)";
    const std::string without_token = R"(
without a token the counter is left alone
counter=0       | a=$/4000            | 1 0 T |              | free<-$
)";
    const meanings in_a_call_for_several{
        {"| 1 0 T", "| 1 0"},
        {"| 1 1 T", "| 1 0 1 -2"},
        {"| 0 0 T", "| 1 0 1 0"},
        {"| -1 0 T", "| 1 0 1 -1"},
        {"channel=none", "publish=0"},
        {"free<-", "a:free<-"}};
    check(
        core::guarded_release.text,
        "a a:f",
        "fence_ttl=90000 token=$ counter=50 publish=1",
        put_in(of_one, in_a_call_for_several) + R"(
who listens is counted
listeners=2     | a=$/4000            | 1 0 1 3 | a:f=50/90000    | a:free<-$
)");
    check(
        core::guarded_release.text,
        "a",
        "fence_ttl=0 token=$ publish=1",
        R"(
without a token the counter is left alone
listeners=2     | a=$/4000            | 1 0 1 3     |              | a:free<-$
where it is another's or missing, nothing is done
                | a=other/4000 a:f=7/9 | 1 0 1 0    | =            |
)");
    check(
        core::announced_release.text,
        "a a:i",
        "token=$ channel=free intent=mine",
        R"(
the intent goes with what is its own, unless that of another took its place
                | a=readers/9 a:i=mine/900  | 0 0 T  | a=readers/9 | free<-$
                | a=other/4000              | 0 0 T  | =          |
publish=refused | a=$/4000                  | 1 1 T  |            |
publish=refused | a:i=mine/900              | -1 1 T |            |
channel=none    | a:i=mine/900              | -1 0 T |            |
intent=0        | a=$/4000 a:i=0/900        | 1 0 T  | a:i=0/900  | free<-$
intent=0        | a:i=0/900                 | -1 0 T | =          |
)");
    check(
        core::all_release.text,
        "a a:f b b:f",
        "token=$ counter=50 fence_ttl=90000 channel=:free",
        R"(
it removes what is its own, levels the counters and tells that of each
                | a=$/9 b=$/9 a:f=51/9 b:f=49/9  | 1 0 T  | a:f=51/9 b:f=50/90000     | a:free<-$ b:free<-$
                | a=$/9 b=$/9 a:f=50.0/9 b:f=#   | 1 0 T  | a:f=50.0/9 b:f=#          | a:free<-$ b:free<-$
counter=1       | a=$/9 b=$/9 a:f=abc/9          | 1 0 T  | a:f=1/90000 b:f=1/90000   | a:free<-$ b:free<-$
counter=0       | a=$/4000 b=$/4000 a:f=-7/9     | 1 0 T  | a:f=-7/9                  | a:free<-$ b:free<-$
channel=none    | a=$/4000 b=$/4000              | 1 0 T  | a:f=50/90000 b:f=50/90000 |
publish=refused | a=$/4000 b=$/4000              | 1 1 T  | a:f=50/90000 b:f=50/90000 |
one that is another's says more than one that is missing
                | a=other/4000 b=$/4000 a:f=7/9  | 0 0 T  | = b=none b:f=50/90000     | b:free<-$
                | a=$/4000 b=other/4000          | 0 0 T  | = a=none a:f=50/90000     | a:free<-$
                | a=$/4000                       | -1 0 T | a:f=50/90000              | a:free<-$
                | b=$/4000                       | -1 0 T | b:f=50/90000              | b:free<-$
)");
    check(
        core::shared_release.text,
        "a a:r",
        "token=$ channel=free",
        R"(
the last reader frees the lock, and tells that
                | a=readers/9 a:r={$@M}/9         | 1 0 T  |                              | free<-$
channel=none    | a=readers/9 a:r={$@M+5}/9       | 1 0 T  |                              |
publish=refused | a=readers/9 a:r={$@M+5}/9       | 1 1 T  |                              |
any other leaves it until the last remaining lease has ended
                | a=readers/9 a:r={$@M+8,x@M}/9   | 1 0 T  | a=readers/1 a:r={x@M}/9      |
                | a=readers/9 a:r={$@M+5,w@M-9,x@M+6}/9 | 1 0 T | a=readers/7 a:r={w@M-9,x@M+6}/9 |
one that had it alone and wanted to be a reader
                | a=$/4000                        | 1 0 T  |                              | free<-$
channel=none    | a=$/4000                        | 1 0 T  |                              |
what has ended or is not there, is not
                | a=readers/9 a:r={$@M-1,x@M+8}/9 | -1 0 T | a=readers/9 a:r={x@M+8}/9    |
publish=refused | a=readers/9 a:r={x@M+8}/9       | -1 0 T | =                            |
                | a=other/4000                    | 0 0 T  | =                            |
                | a=other/4000 a:r={$@M+5}/9      | 0 0 T  | a=other/4000                 |
a value that no reader is left for goes
                | a=readers/9 a:r={x@M-1}/9       | -1 0 T | a:r={x@M-1}/9                | free<-$
who is left is not guessed
                | a=readers/9 a:r=#               | error  | =                            |
                | a=$/4000 a:r=#                  | 1 0 T  | a:r=#                        | free<-$
)");
}

TEST_CASE("what releases of several locks in one call do") {
    check(
        core::guarded_release.text,
        "a a:f b b:f c c:f",
        "fence_ttl=90000 of_a=$ of_b=one of_c=two counter_a=50 counter_b=51 counter_c=52 "
        "publish=101",
        R"(
each has a token and a counter of its own, and is told of if that is wanted
                | a=$/9 b=one/9 c=two/9 a:f=60/9 c:f=60/9    | 1 0     | a:f=60/9 b:f=51/90000 c:f=60/9         | a:free<-$ c:free<-two
the result of one does not affect the others, and the results are in their order
publish=refused | b=other/9 c=two/9                          | 1 0 1 -1 2 0 3 -2 | b=other/9 c:f=52/90000       |
)");
    check(
        core::guarded_release.text,
        "a a:f a a:f",
        "fence_ttl=90000 of_a=$ again=one counter_a=50 counter_again=51 publish=11",
        R"(
of the same lock each token is looked for
                | a=one/9 | 1 0 1 0  | a:f=51/90000 | a:free<-one
                | a=$/9   | 1 0 2 -1 | a:f=50/90000 | a:free<-$
)");
    check(
        core::guarded_release.text,
        "a b c d",
        "fence_ttl=0 of_a=$ of_b=one of_c=two of_d=four publish=0100",
        R"(
each has a token of its own, and counters are left alone
publish=refused | a=$/9 b=one/9 d=four/9               | 1 0 2 -2 3 -1 |               |
the result of one does not affect the others, and the results are in their order
                | a=other/4000 b=one/9 c=two/9 d=four/9 | 1 0 1 0       | a=other/4000  | b:free<-one
)");
}

TEST_CASE("what the scan of a pool does") {
    check(
        core::scan_slots,
        "pool:0 pool:1 pool:2 pool:3",
        "",
        R"(
it says which slots are taken, and when the first of them is free
        |                                                      | 1111 -1  | =
        | pool:0=x/400 pool:2=x/300 pool:4=x/9                 | 0101 300 | =
        | pool:1=x/0 pool:2=x/400                              | 1001 0   | =
        | pool:1=x                                             | 1011 -1  | =
)");
}

TEST_CASE("what taking and leaving a place in the queue do") {
    check(
        core::ticket_take.text,
        "a q p",
        "who=me keep=10000",
        R"(
who comes first has its turn, unless the lock is there
 |          | 1 0 0    | q={me@T}/10000 p={me@T+10s}/10000
 | a=x/4000 | 0 4000 0 | = q={me@T}/10000 p={me@T+10s}/10000
 | a=x/0    | 0 0 0    | = q={me@T}/10000 p={me@T+10s}/10000
who comes later is told how long the first keeps its place, and how many are before it
 | q={x@T-5}/9 p={x@T+4000000}/9 | 0 4000 1 | q={x@T-5,me@T}/10000 p={x@T+4000000,me@T+10s}/10000
a place that is renewed stays where it is
 | q={me@T-5,x@T-4}/9 p={me@T+1,x@T+9}/9 | 1 0 0 | q={me@T-5,x@T-4}/10000 p={x@T+9,me@T+10s}/10000
 | q={me@T-5,x@T-4}/9 p={x@T+9}/9 | 1 0 0 | q={me@T-5,x@T-4}/10000 p={x@T+9,me@T+10s}/10000
arrivals differ, also when the clock was set back
 | q={x@T}/9 p={x@T+7000}/9    | 0 7 1 | q={x@T,me@T+1}/10000 p={x@T+7000,me@T+10s}/10000
 | q={w@T-1,x@T+5s}/9 p={w@T+7000,x@T+8000}/9 | 0 7 2 | q={w@T-1,x@T+5s,me@T+5000001}/10000 p={w@T+7000,x@T+8000,me@T+10s}/10000
the first is dropped when its place has ended
 | q={x@T-5}/9 p={x@T}/9      | 1 0 0 | q={me@T}/10000 p={me@T+10s}/10000
 | q={x@T-5,y@T-4}/9 p={x@T-1,y@T+7000}/9 | 0 7 1 | q={y@T-4,me@T}/10000 p={y@T+7000,me@T+10s}/10000
the queue stays for as long as the longest place
 | p={x@T+20s}/20000 q={x@T-5}/9 | 0 20000 1 | q={x@T-5,me@T}/20000 p={me@T+10s,x@T+20s}/20000
 | p={x@T+8s}/20000 q={x@T-5}/20000 | 0 8000 1 | q={x@T-5,me@T}/20000 p={x@T+8s,me@T+10s}/20000
an error leaves nothing that does not expire
 | p=#  | error | =
)");
    check(
        core::ticket_leave.text,
        "a q p",
        "who=$ channel=free",
        R"(
the next is told if it has its turn now
             | q={$@T-5,x@T}/9 p={$@T+1,x@T+2}/9 | 1 0 0 | q={x@T}/9 p={x@T+2}/9 | free<-$
channel=none | q={$@T-5,x@T}/9 p={$@T+1,x@T+2}/9 | 1 0 0 | q={x@T}/9 p={x@T+2}/9 |
             | q={$@T-5,x@T}/9 p={$@T+1,x@T+2}/9 a=y/9 | 1 0 0 | a=y/9 q={x@T}/9 p={x@T+2}/9 |
             | q={$@T-5,x@T}/9                   | 1 0 0 | q={x@T}/9               | free<-$
not by who was not the first, or was the only one
             | q={x@T-5,$@T}/9 p={$@T+1,x@T+2}/9 | 1 0 0 | q={x@T-5}/9 p={x@T+2}/9 |
             | q={x@T-5}/9 p={x@T+2}/9           | 0 0 0 | = |
)");
}

TEST_CASE("taking a place drops at most a hundred places that have ended") {
    const auto take = [](int ended, const std::string& expected) {
        std::string before;
        for (int i = 100; i < 100 + ended; ++i) { // nobody knows how long these keep theirs
            before += (before.empty() ? "q={x" : ",x") + std::to_string(i) + "@T-"
                      + std::to_string(900 - i);
        }
        check(
            core::ticket_take.text,
            "a q p",
            "who=me keep=10000",
            "|" + before + "}/9 |" + expected);
    };
    take(100, "1 0 0 | q={me@T}/10000 p={me@T+10s}/10000");
    take(102, "0 0 2 | q={x200@T-700,x201@T-699,me@T}/10000 p={me@T+10s}/10000");
}

}} // namespace script_effects_test
