#include "network.hpp"

#include "core/bytes/form_scripts.hpp"
#include "core/bytes/guarded_scripts.hpp"
#include "core/bytes/keys.hpp"
#include "core/bytes/scripts.hpp"
#include "core/masters/member_list.hpp"

#include <charconv>
#include <cstring>

namespace simulation {

namespace {

// Masters' wall clocks show a date; zero would hide mistakes.
constexpr nanos wall_base = 1'700'000'000 * sec;
constexpr std::size_t token_size = 40;

// How long another server has been up that takes a dead master's place.
constexpr std::int64_t long_ago_us = 1000 * sec / us;

bool matches(int wanted, unsigned given) noexcept {
    return wanted < 0 || static_cast<unsigned>(wanted) == given;
}

} // namespace

// One token in a command that may set a lock, and one of the command's keys.
struct lock_write {
    std::string_view key;
    std::string_view token;
    std::int64_t ttl_ms = 0;
    bool guarded = false;        // it carries a moment after which it does nothing
    bool acquires = false;       // ... which is the end of its attempt
    std::int64_t before_ms = -1; // until when the key stayed with the token before the command
};

namespace {

std::int64_t number_in(std::string_view text) noexcept {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

bool calls(server::words words, const redlock::core::script& what) noexcept {
    return words[1] == what.text || words[1] == what.sha1;
}

// Of a call for several locks, each token with each key: only its own has it.
std::vector<lock_write> lock_writes_in(server::words words) {
    using namespace redlock::core;
    if (words.size() >= 6 && words[0] == "SET") {
        return {
            {.key = words[1],
             .token = words[2],
             .ttl_ms = number_in(words.back()),
             .acquires = true}};
    }
    std::vector<lock_write> found;
    const bool script = words.size() > 4 && words[0].starts_with("EVAL");
    const auto count = script ? static_cast<std::size_t>(number_in(words[2])) : 0;
    if (count == 0 || words.size() < count + 5) {
        return found;
    }
    const server::words keys = words.subspan(3, count);
    const server::words arguments = words.subspan(3 + count);
    lock_write one;
    one.ttl_ms = number_in(arguments[arguments[0].size() == token_size ? 1 : 0]);
    one.guarded = std::ranges::find(keys, record_key("p:")) != keys.end();
    one.acquires = calls(words, guarded_acquire) || calls(words, all_acquire)
                   || calls(words, shared_acquire) || calls(words, announced_acquire);
    for (const std::string_view argument : arguments) {
        for (const std::string_view key : keys) {
            const bool lock = key.ends_with('}') || key.ends_with(":readers")
                              || key.find("}:slot:") != std::string_view::npos;
            if (argument.size() == token_size && lock) {
                one.key = key;
                one.token = argument;
                found.push_back(one);
            }
        }
    }
    return found;
}

// A command in one line, its script by name.
std::string describe(server::words words) {
    using namespace redlock::core;
    static const std::vector<std::pair<std::string_view, const script*>> scripts{
        {"compare_and_extend_each", &compare_and_extend_each},
        {"HANDSHAKE", &guarded_handshake},
        {"ACQUIRE", &guarded_acquire},
        {"RAISE", &all_raise},
        {"EXTEND", &guarded_extend},
        {"HEAL", &all_heal},
        {"RELEASE", &guarded_release}};
    std::string out;
    for (std::string_view word : words) {
        for (const auto& [name, script] : scripts) {
            word = word == script->text || word == script->sha1 ? name : word;
        }
        // Tokens and run ids are distinguished by their first digits.
        out += (out.empty() ? "" : " ") + std::string(word.substr(0, word.size() < 40 ? 40 : 8));
    }
    return out;
}

// The final list in the records of a quorum that was founded.
std::string list_of_members(const plan& what) {
    redlock::core::generation first{1, {}, {}};
    for (std::size_t i = 0; i < what.first_members(); ++i) {
        first.members.push_back("m" + std::to_string(i));
    }
    return redlock::core::written({redlock::core::recorded_list::state::final, first});
}

} // namespace

void surroundings::witness(nanos at, std::uint64_t origin, std::string_view text) noexcept {
    const auto mix = [this](std::uint64_t value) { digest = generator(digest ^ value).next(); };
    mix(static_cast<std::uint64_t>(at));
    mix(origin);
    mix(text.size());
    while (!text.empty()) {
        std::uint64_t word = 0;
        const std::size_t taken = std::min(text.size(), sizeof word);
        std::memcpy(&word, text.data(), taken);
        mix(word);
        text.remove_prefix(taken);
    }
}

network::network(surroundings& here, lua_machine& lua) : here_(here) {
    const plan& what = here.what;
    masters_.reserve(what.masters.size()); // stable addresses
    for (unsigned i = 0; i < what.masters.size(); ++i) {
        const master_plan& one = what.masters[i];
        master& made = masters_.emplace_back(
            master{i, server(lua), skewed_clock(wall_base + one.offset_us * us, one.rate_ppb)});
        made.process.run_id = new_run_id(made);
        made.process.started_us = made.wall_us(0) - one.age / us;
        made.process.declared_keys_only = true;
        // The quorum has been in use for as long.
        made.process.data.put(redlock::core::record_key("p:")).value =
            "4 " + made.process.run_id + " - " + std::to_string(made.process.started_us) + " 0 "
            + (what.founded && i < what.first_members()
                   ? std::string(32, '0') + list_of_members(what)
                   : "0");
        made.process.tell = [this, &made](std::string_view channel, std::string_view text) {
            return publish(made, channel, text);
        };
    }
    for (std::size_t i = 0; i < what.clients.size() * what.masters.size(); ++i) {
        links_.push_back({generator(what.seed, 1000 + i)});
        links_.push_back({generator(what.seed, 5000 + i)}); // pushes
    }
}

std::string network::new_run_id(master& one) {
    generator random(here_.what.seed, 2000 + 64 * one.number + one.boots++);
    std::string id;
    for (std::size_t i = 0; i < 40; ++i) {
        id += "0123456789abcdef"[random.below(16)];
    }
    return id;
}

nanos network::delay(link& way) {
    const weather& air = here_.what.air;
    const bool fair = here_.now >= here_.what.faults_end; // slowness is a fault as well
    if (!fair && air.slow_percent != 0 && way.random.percent(air.slow_percent)) {
        return way.random.between(air.delay_max, air.slow_max);
    }
    return way.random.between(air.delay_min, air.delay_max);
}

connection_id
network::open(connection_user& user, unsigned client, unsigned place, unsigned master, wire kind) {
    const auto id = static_cast<connection_id>(connections_.size());
    connection& made = connections_.emplace_back();
    made.user = &user;
    made.client = client;
    made.place = place;
    made.master = master;
    made.kind = kind;
    const nanos there = delay(link_of(made));
    here_.queue.push(
        here_.now + there, [this, id] { connect(id); }, client);
    return id;
}

void network::connect(connection_id id) {
    connection& one = connections_[id];
    if (one.client_gone) {
        return;
    }
    link& way = link_of(one);
    if (way.blocked_there != 0 || way.blocked_back != 0) { // a black hole: the kernel tries again
        const nanos after = way.random.between(20 * ms, 100 * ms);
        here_.queue.push(
            here_.now + after, [this, id] { connect(id); }, one.client);
        return;
    }
    one.accepted = way.refused == 0 && masters_[one.master].down == 0;
    one.client_gone = one.server_gone = !one.accepted;
    one.user->connected(one.place, one.accepted);
}

void network::leave(connection_id id) {
    connection& one = connections_[id];
    if (one.client_gone) {
        return;
    }
    const weather& air = here_.what.air;
    link& way = link_of(one);
    // What was written is in flight; closing the socket does not take it back.
    const bool late = air.late_max != 0 && way.random.percent(air.late_percent);
    scatter(one, id, late, late ? air.late_max : 0);
}

// The client is gone. What it has written arrives, possibly late, or loses its end.
void network::scatter(connection& one, connection_id id, bool late, nanos late_max) {
    one.client_gone = true;
    masters_[one.master].listeners.leave(static_cast<audience::listener>(id));
    one.back.chunks.clear();
    one.back.head = 0;
    if (one.server_gone || late_max < 0) {
        one.server_gone = true;
        return;
    }
    if (late) {
        const nanos by = link_of(one).random.between(0, late_max);
        for (std::size_t i = one.there.head; i < one.there.chunks.size(); ++i) {
            one.there.chunks[i].at += by;
            expect_there(id, one.there.chunks[i].at);
        }
        one.there.last += by;
    }
}

void network::send(connection_id id, std::string bytes) {
    connection& one = connections_[id];
    here_.witness(here_.now, id, bytes);
    link& way = link_of(one);
    nanos at = std::max(one.there.last, here_.now + delay(way));
    const auto text = bytes.find("born + q, now, e}"); // of a handshake, or of the look before it
    if (way.slow_handshakes != 0 && text != std::string::npos) {
        const auto begin = bytes.rfind('*', bytes.rfind("\r\n$4\r\nEVAL\r\n", text));
        if (begin != 0) { // INFO comes before it
            one.there.chunks.push_back({at, bytes.substr(0, begin)});
            expect_there(id, at);
            bytes.erase(0, begin);
        }
        at += way.random.between(0, way.slow_handshakes);
    }
    one.there.last = at;
    one.there.chunks.push_back({at, std::move(bytes)});
    expect_there(id, at);
}

void network::expect_there(connection_id id, nanos at) {
    here_.queue.push(at, [this, id] { arrive_there(id); });
}

void network::expect_back(connection_id id, nanos at) {
    here_.queue.push(
        at, [this, id] { arrive_back(id); }, connections_[id].client);
}

void network::expect_hang_up(connection_id id, nanos after) {
    here_.queue.push(
        here_.now + after, [this, id] { hang_up(id); }, connections_[id].client);
}

void network::arrive_there(connection_id id) {
    connection& one = connections_[id];
    const master& there = masters_[one.master];
    if (one.server_gone || there.stalled != 0 || link_of(one).blocked_there != 0) {
        return;
    }
    while (one.there.ready(here_.now) && !one.server_gone) {
        const chunk what = std::move(one.there.chunks[one.there.head++]);
        execute(one, id, what);
    }
}

void network::execute(connection& one, connection_id id, const chunk& what) {
    master& there = masters_[one.master];
    one.input += what.bytes;
    std::size_t at = 0;
    replies_.clear();
    while (take_command(one.input, at, words_)) {
        if (!one.lie.empty()) {
            replies_ += std::exchange(one.lie, {});
            continue;
        }
        ++here_.count.commands;
        here_.count.late_commands += one.client_gone ? 1U : 0U;
        const std::optional<std::vector<answer>> confirmed = there.listeners.execute(id, words_);
        answer said;
        if (confirmed) {
            for (const answer& each : *confirmed) {
                each.encode(replies_);
            }
            said = confirmed->back();
        } else {
            std::vector<lock_write> writes = lock_writes_in(words_);
            for (lock_write& each : writes) {
                each.before_ms = expiry_of(there, each.key, each.token);
            }
            said = there.process.execute(words_, there.wall_us(here_.now));
            said.encode(replies_);
            check_keys(there, writes);
            note_asked(one.client, writes);
        }
        if (here_.story != nullptr && words_[0] != "INFO") {
            std::string text = said.describe();
            std::ranges::replace(text, '\n', ' ');
            here_.note(
                "m" + std::to_string(one.master),
                "c{}: {} -> {:.60}{}",
                one.client,
                describe(words_),
                text,
                one.client_gone || one.replies_lost ? "   (the reply is lost)" : "");
        }
    }
    one.input.erase(0, at);
    if (!replies_.empty()) {
        send_back(id, replies_);
    }
}

void network::send_back(connection_id id, std::string bytes) {
    connection& one = connections_[id];
    if (one.client_gone || one.replies_lost) {
        return;
    }
    const nanos arrives = std::max(one.back.last, here_.now + delay(link_of(one)));
    one.back.last = arrives;
    one.back.chunks.push_back({arrives, std::move(bytes)});
    expect_back(id, arrives);
}

// To each listener by itself, and not to each: what listens to a channel may miss what is said.
std::int64_t network::publish(master& from, std::string_view channel, std::string_view text) {
    std::string bytes;
    message(channel, text).encode(bytes);
    const std::vector<audience::listener> listeners = from.listeners.of(channel);
    for (const audience::listener id : listeners) {
        const unsigned lost = here_.what.air.lost_pushes_percent;
        if (lost != 0 && link_of(connections_[id]).random.percent(lost)) {
            continue;
        }
        ++here_.count.pushes;
        send_back(id, bytes);
    }
    return static_cast<std::int64_t>(listeners.size());
}

void network::arrive_back(connection_id id) {
    connection& one = connections_[id];
    if (one.client_gone || link_of(one).blocked_back != 0) {
        return;
    }
    std::string bytes;
    while (one.back.ready(here_.now)) {
        bytes += one.back.chunks[one.back.head++].bytes;
    }
    if (!bytes.empty()) {
        one.user->arrived(one.place, std::move(bytes));
    }
}

// The client is notified of the break; if it is partitioned, later.
void network::hang_up(connection_id id) {
    connection& one = connections_[id];
    if (one.client_gone) {
        return;
    }
    if (link_of(one).blocked_back != 0) {
        expect_hang_up(id, link_of(one).random.between(ms, 20 * ms));
        return;
    }
    one.client_gone = true;
    one.user->hung_up(one.place);
}

template <typename F>
void network::for_links(const fault& what, F change) {
    for (unsigned c = 0; c < here_.what.clients.size(); ++c) {
        for (unsigned m = 0; m < masters_.size(); ++m) {
            for (const wire kind : {wire::commands, wire::pushes}) {
                if (matches(what.client, c) && matches(what.master, m) && what.cuts(kind)) {
                    change(links_[link_number(c, m, kind)]);
                }
            }
        }
    }
}

template <typename F>
void network::for_masters(int which, F change) {
    for (master& one : masters_) {
        if (matches(which, one.number)) {
            change(one);
        }
    }
}

bool network::concerns(const fault& what, const connection& one) const noexcept {
    return matches(what.client, one.client) && matches(what.master, one.master)
           && what.cuts(one.kind);
}

void network::change(const fault& what, bool begins) {
    const auto count = [&](unsigned& number) { begins ? ++number : --number; };
    // What an operator says to a master.
    static const std::map<fault_kind, std::vector<std::string_view>> orders{
        {fault_kind::flush, {"FLUSHALL"}},
        {fault_kind::flush_db, {"FLUSHDB"}},
        {fault_kind::forget_words, {"SCRIPT", "FLUSH"}},
        {fault_kind::reset_stats, {"CONFIG", "RESETSTAT"}},
        {fault_kind::reload, {"DEBUG", "RELOAD"}},
        // All ways to replace the data leave a trace in the counters of commands.
        {fault_kind::replace, {"DEBUG", "RELOAD"}},
    };
    if (const auto found = orders.find(what.kind); found != orders.end()) {
        for_masters(what.master, [&](master& one) { say(one, found->second); });
    }
    switch (what.kind) {
    case fault_kind::partition:
        for_links(what, [&](link& way) {
            if ((what.amount & 1) != 0) {
                count(way.blocked_there);
            }
            if ((what.amount & 2) != 0) {
                count(way.blocked_back);
            }
        });
        if (!begins) {
            retry(what);
        }
        break;
    case fault_kind::refuse:
        refuse(what, begins);
        break;
    case fault_kind::slow_handshake:
        for_links(what, [&](link& way) { way.slow_handshakes = begins ? what.amount : 0; });
        break;
    case fault_kind::break_late:
    case fault_kind::break_lost:
        break_connections(what);
        break;
    case fault_kind::deafen: {
        fault ended = what;
        ended.only = wire::pushes;
        refuse(ended, true);
        break_connections(ended);
        break;
    }
    case fault_kind::stall:
        for_masters(what.master, [&](master& one) { count(one.stalled); });
        if (!begins) {
            retry({.master = what.master});
        }
        break;
    case fault_kind::crash:
    case fault_kind::promote:
    case fault_kind::take_over:
        crash(static_cast<unsigned>(what.master));
        break;
    case fault_kind::replace:
        for_masters(what.master, [&](master& one) {
            one.process.data = data_of(static_cast<int>(what.amount));
        });
        break;
    case fault_kind::remove_keys:
        for_masters(what.master, [&](master& one) {
            remove_keys(one, [&](const entry& each) {
                const int kind = each.key == redlock::core::record_key("p:") ? 4
                                 : each.key.ends_with(":fence")              ? 2
                                 : each.value.size() == token_size           ? 1
                                                                             : 0;
                return (kind & what.amount) != 0;
            });
        });
        break;
    case fault_kind::hush:
        for_masters(what.master, [&](master& one) { one.process.refuses_publish = begins; });
        break;
    case fault_kind::evict: // as under the pressure of other data
        for_masters(what.master, [&](master& one) {
            const bool may = here_.now < what.at + what.span;
            one.process.info_overrides["maxmemory"] = may ? "1000000" : "0";
            one.process.info_overrides["maxmemory_policy"] = may ? "volatile-lru" : "noeviction";
            one.process.evicted_keys += remove_keys(one, [&](const entry& each) {
                return !begins && each.expires_ms != entry::no_expiry;
            });
        });
        break;
    case fault_kind::step:
        for_masters(what.master, [&](master& one) { one.wall.step(what.amount * us); });
        break;
    case fault_kind::lie:
        for (connection_id id = 0; id < connections_.size(); ++id) {
            connection& one = connections_[id];
            if (!one.accepted || !concerns(what, one)) {
                continue;
            }
            if (what.amount == 0) {
                send_back(id, what.text);
            } else {
                one.lie = what.text;
            }
        }
        break;
    default: // an order, or of clients
        break;
    }
}

// Something that was in the way is gone.
void network::retry(const fault& over) {
    for (connection_id id = 0; id < connections_.size(); ++id) {
        if (concerns(over, connections_[id])) {
            expect_there(id, here_.now);
            expect_back(id, here_.now);
        }
    }
}

void network::refuse(const fault& what, bool begins) {
    for_links(what, [&](link& way) { begins ? ++way.refused : --way.refused; });
}

void network::break_connections(const fault& what) {
    const bool late = what.kind == fault_kind::break_late;
    for (connection_id id = 0; id < connections_.size(); ++id) {
        connection& one = connections_[id];
        if (!one.accepted || one.client_gone || !concerns(what, one)) {
            continue;
        }
        scatter(one, id, late, late ? what.amount : -1);
        one.client_gone = false; // it does not know yet
        one.replies_lost = true;
        expect_hang_up(id, link_of(one).random.between(0, ms));
    }
}

void network::crash(unsigned master) {
    ++masters_[master].down;
    masters_[master].listeners.clear();
    for (connection_id id = 0; id < connections_.size(); ++id) {
        connection& one = connections_[id];
        if (one.master == master && one.accepted && !one.server_gone) {
            one.server_gone = true;
            if (!one.client_gone) {
                expect_hang_up(id, delay(link_of(one)));
            }
        }
    }
}

void network::boot(const fault& what, store data) {
    master& one = masters_[static_cast<std::size_t>(what.master)];
    const std::int64_t now_us = one.wall_us(here_.now);
    if (what.kind == fault_kind::promote) {
        one.process.promote(new_run_id(one), now_us - long_ago_us, std::move(data));
    } else {
        const bool other = what.kind == fault_kind::take_over;
        one.process.restart(new_run_id(one), now_us - (other ? long_ago_us : 0), std::move(data));
    }
    --one.down;
}

// By hand, with a client that no connection here is.
void network::say(master& one, const std::vector<std::string_view>& words) {
    if (one.down == 0) {
        one.process.execute(words, one.wall_us(here_.now));
    }
}

template <typename Which>
std::size_t network::remove_keys(master& one, Which which) {
    std::vector<std::string> found;
    for (const entry& each : one.process.data.entries()) {
        if (which(each)) {
            found.push_back(each.key);
        }
    }
    for (const std::string& key : found) {
        say(one, {"DEL", key});
    }
    return found.size();
}

bool network::quiet(unsigned client) const {
    return std::ranges::none_of(connections_, [&](const connection& one) {
        return one.client == client && one.kind == wire::commands && !one.client_gone
               && (one.there.head < one.there.chunks.size()
                   || one.back.head < one.back.chunks.size());
    });
}

std::vector<std::string> network::lock_keys() {
    std::vector<std::string> found;
    for (const master& here : masters_) {
        const std::int64_t now_ms = here.wall_us(here_.now) / 1000;
        for (const entry& one : here.process.data.entries()) {
            // A queue, and an intent, are forgotten in their own time.
            if (one.key.find("}:queue") != std::string::npos) {
                continue;
            }
            const bool lock =
                one.is == entry::type::text
                && (one.value.size() == token_size || one.value == redlock::core::held_by_readers)
                && one.expires_ms >= now_ms && !one.key.ends_with(":intent");
            const bool read = !one.members.empty() && one.expires_ms >= now_ms
                              && one.members.back().first >= static_cast<double>(now_ms);
            if (lock || read) {
                found.push_back("m" + std::to_string(here.number) + " " + one.key);
            }
        }
    }
    return found;
}

void network::note_attempt(std::string token, nanos began) {
    attempts_.insert_or_assign(std::move(token), attempt{.began = began});
}

network::attempt* network::find_attempt(std::string_view token) {
    const auto found = attempts_.find(token);
    return found == attempts_.end() ? nullptr : &found->second;
}

void network::note_attach(std::string_view token, nanos now) {
    note_deadline(token, now + slow(here_.what.master_timeout_ms * ms));
}

void network::note_deadline(std::string_view token, nanos deadline) {
    if (attempt* const one = find_attempt(token)) {
        one->over = std::max(one->over, deadline);
    }
}

nanos network::note_holder(std::string_view token) {
    attempt* const one = find_attempt(token);
    if (one != nullptr && one->held_since < 0) {
        one->held_since = here_.now;
    }
    return one == nullptr ? here_.now : one->held_since;
}

// For a reader it is while others read it, unless somebody waits for them.
bool network::is_free(unsigned number, const std::string& key, taking how) {
    master& one = masters_[number];
    const std::int64_t now_ms = one.wall_us(here_.now) / 1000;
    const auto find = [&](const std::string& name) { return one.process.data.find(name, now_ms); };
    const entry* const held = find(key);
    return how != taking::reading
               ? held == nullptr
               : (held == nullptr || held->value == redlock::core::held_by_readers)
                     && find(key + ":intent") == nullptr;
}

void network::note_asked(unsigned client, std::span<const lock_write> writes) {
    for (const lock_write& each : writes) {
        if (each.acquires && here_.what.attempt_within != 0) {
            const std::string_view lock = each.key.substr(0, each.key.find(":readers"));
            asked_[std::to_string(client) + " " + std::string(lock)] = here_.now;
        }
    }
}

nanos network::asked_at(unsigned client, std::string_view key) const {
    const auto found = asked_.find(std::to_string(client) + " " + std::string(key));
    return found == asked_.end() ? 0 : found->second;
}

// By true time, where the clock that measures it is as slow as it may be.
nanos network::slow(nanos span) const noexcept {
    return span + static_cast<nanos>(wide(span) * here_.what.drift_ppb / 1'000'000'000);
}

// Until when the key, or the reader's entry in it, stays with that token; -1: it has not.
std::int64_t network::expiry_of(master& where, std::string_view key, std::string_view token) {
    const entry* const found = where.process.data.find(key, where.wall_us(here_.now) / 1000);
    if (found == nullptr) {
        return -1;
    }
    for (const auto& [score, member] : found->members) {
        if (member == token) {
            return std::min(static_cast<std::int64_t>(score), found->expires_ms);
        }
    }
    return found->is == entry::type::text && found->value == token ? found->expires_ms : -1;
}

// A key that a command wrote or extended must be gone in time.
void network::check_keys(master& where, std::span<const lock_write> writes) {
    for (const lock_write& one : writes) {
        const std::int64_t expires_ms = expiry_of(where, one.key, one.token);
        // An owner that became a reader keeps what it had.
        const bool longer = std::ranges::all_of(writes, [&](const lock_write& each) {
            return each.token != one.token || each.before_ms < expires_ms;
        });
        if (longer) {
            check_key(where, one, expires_ms);
        }
    }
}

void network::check_key(master& where, const lock_write& what, std::int64_t expires_ms) {
    const nanos until =
        expires_ms == entry::no_expiry ? no_time : where.wall.when((expires_ms + 1) * ms);
    // A millisecond is for Redis' rounding.
    const nanos ttl = slow(what.ttl_ms * ms) + 2 * ms;
    nanos bound = here_.now + ttl;
    if (const attempt* const made = find_attempt(what.token); what.guarded && made != nullptr) {
        // Guarded: nothing is executed once its attempt is over, or the deadline of its lease. A
        // client's bound on the master's clock can be wrong by three things: the drift over the
        // whole run at most, the round trip of the fastest command, and steps of the clock. After a
        // step it may be the round trip of any command.
        const plan& all = here_.what;
        const bool steps = std::ranges::any_of(
            all.faults, [](const fault& each) { return each.kind == fault_kind::step; });
        const nanos round_trip = slow(all.master_timeout_ms * ms);
        const nanos error = here_.now / 1'000 * all.drift_ppb * 2 / 1'000'000
                            + (steps ? std::max(round_trip, all.air.slow_max) : round_trip)
                            + all.offset_bound_ms * ms + 2 * ms;
        const nanos over =
            what.acquires ? made->began + slow(all.master_timeout_ms * ms) : made->over;
        bound = std::min(bound, over + error + ttl);
    }
    here_.judge.key_stays(here_.now, where.number, until, bound);
}

} // namespace simulation
