#include "network.hpp"

#include "core/bytes/guarded_scripts.hpp"
#include "core/bytes/keys.hpp"
#include "core/masters/member_list.hpp"

#include <charconv>

namespace simulation {

namespace {

// Masters' wall clocks show a date; zero would hide mistakes.
constexpr nanos wall_base = 1'700'000'000 * sec;
constexpr std::size_t token_size = 40;
bool matches(int wanted, unsigned given) noexcept {
    return wanted < 0 || static_cast<unsigned>(wanted) == given;
}

} // namespace

// Of a command that may set a lock: its keys, the token and the ttl.
struct lock_write {
    std::vector<std::string_view> keys; // of a reader's entry that of the readers
    std::string_view token;
    std::int64_t ttl_ms = 0;
    bool guarded = false;  // it carries a moment after which it does nothing
    bool acquires = false; // and that is the end of its attempt
};

namespace {

std::int64_t number_in(std::string_view text) noexcept {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::optional<lock_write> lock_write_in(server::words words) {
    if (words.size() >= 6 && words[0] == "SET") {
        return lock_write{{words[1]}, words[2], number_in(words.back())};
    }
    if (words.size() <= 4 || !words[0].starts_with("EVAL")) {
        return std::nullopt;
    }
    const auto count = static_cast<std::size_t>(number_in(words[2]));
    if (count < 1 || words.size() <= 4 + count || words[3 + count].size() != token_size) {
        return std::nullopt;
    }
    const server::words keys = words.subspan(3, count);
    const std::size_t arguments = words.size() - 3 - count;
    lock_write out{
        .keys = {keys[0]}, .token = words[3 + count], .ttl_ms = number_in(words[4 + count])};
    const auto has_readers = [&](std::size_t at) {
        return keys.size() > at && keys[at].ends_with(":readers");
    };
    if (has_readers(1)) { // acquire, extend, release
        out.keys.push_back(keys[1]);
        out.guarded = count > 2;
        out.acquires = count == 4;
    } else if (keys.size() == 4 && keys[3].ends_with(":intent")) {
        out.guarded = out.acquires = true;
    } else {
        for (std::size_t i = 2; i + 1 < count; i += 2) {
            out.keys.push_back(keys[i]);
        }
        out.guarded = count > 1 && count % 2 == 1;
        out.acquires = arguments == 8;
    }
    return out;
}

bool calls(server::words words, const redlock::core::script& what) noexcept {
    return words[1] == what.text || words[1] == what.sha1;
}

// Of a call for several locks: each by itself.
std::vector<lock_write> lock_writes_in(server::words words) {
    std::vector<lock_write> found;
    const bool several = words.size() > 4;
    const bool acquires = several && calls(words, redlock::core::guarded_acquire);
    const bool plain = several && calls(words, redlock::core::compare_and_extend_each);
    if (!acquires && !plain && !(several && calls(words, redlock::core::guarded_extend))) {
        if (const std::optional<lock_write> one = lock_write_in(words)) {
            found.push_back(*one);
        }
        return found;
    }
    const auto count = static_cast<std::size_t>(number_in(words[2]));
    const std::size_t records = plain ? 0 : 1; // the first key
    const server::words locks = words.subspan(3 + records, count - records);
    const server::words arguments = words.subspan(3 + count);
    const std::size_t keys_each = plain || arguments[1] == "0" ? 1 : 2;
    const std::size_t first_counter = acquires ? 2 * (keys_each - 1) : 0;
    for (std::size_t i = 0; i < locks.size() / keys_each; ++i) {
        found.push_back(
            {.keys = {locks[i * keys_each]},
             .token = arguments[1 + records + first_counter + i],
             .ttl_ms = number_in(arguments[0]),
             .guarded = !plain,
             .acquires = acquires});
    }
    return found;
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

network::network(surroundings& here, lua_machine& lua) : here_(here) {
    const plan& what = here.what;
    for (std::size_t i = 0; i < what.masters.size(); ++i) {
        const master_plan& one = what.masters[i];
        masters_.push_back(
            {server(lua), {}, skewed_clock(wall_base + one.offset_us * us, one.rate_ppb)});
        master& made = masters_.back();
        made.process.run_id = new_run_id(static_cast<unsigned>(i));
        made.process.started_us = made.wall_us(0) - one.age / us;
        made.process.declared_keys_only = true;
        // The quorum has been in use for as long.
        made.process.data.put(redlock::core::record_key("p:")).value =
            "4 " + made.process.run_id + " - " + std::to_string(made.process.started_us) + " 0 "
            + (what.founded && i < what.first_members()
                   ? std::string(32, '0') + list_of_members(what)
                   : "0");
        made.process.tell = [this, i](std::string_view channel, std::string_view text) {
            return publish(static_cast<unsigned>(i), channel, text);
        };
    }
    for (std::size_t i = 0; i < what.clients.size() * what.masters.size(); ++i) {
        links_.push_back({generator(what.seed, 1000 + i)});
        links_.push_back({generator(what.seed, 5000 + i)}); // pushes
    }
}

std::string network::new_run_id(unsigned number) {
    generator random(here_.what.seed, 2000 + 64 * number + masters_[number].boots++);
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

connection_id network::open(unsigned client, unsigned place, unsigned master, wire kind) {
    const auto id = static_cast<connection_id>(connections_.size());
    connection& made = connections_.emplace_back();
    made.client = client;
    made.place = place;
    made.master = master;
    made.kind = kind;
    const nanos there = delay(link_of(made));
    here_.queue.push(here_.now + there, event_kind::connect, id);
    return id;
}

network::reception network::connect(connection_id id) {
    connection& one = connections_[id];
    if (one.client_gone) {
        return reception::nothing;
    }
    link& way = link_of(one);
    if (way.blocked_there != 0 || way.blocked_back != 0) {
        here_.queue.push(
            here_.now + way.random.between(20 * ms, 100 * ms), event_kind::connect, id);
        return reception::nothing; // a black hole; the kernel tries again
    }
    if (way.refused != 0 || masters_[one.master].down != 0) {
        one.client_gone = one.server_gone = true;
        return reception::refused;
    }
    one.accepted = true;
    return reception::accepted;
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
            here_.queue.push(one.there.chunks[i].at, event_kind::arrive_there, id);
        }
        one.there.last += by;
    }
}

void network::send(connection_id id, std::string bytes) {
    connection& one = connections_[id];
    here_.count.witness(here_.now, id, bytes);
    link& way = link_of(one);
    nanos at = std::max(one.there.last, here_.now + delay(way));
    const auto text = bytes.find("born + q, now, e}"); // of a handshake, or of the look before it
    if (way.slow_handshakes != 0 && text != std::string::npos) {
        const auto begin = bytes.rfind('*', bytes.rfind("\r\n$4\r\nEVAL\r\n", text));
        if (begin != 0) { // INFO comes before it
            one.there.chunks.push_back({at, bytes.substr(0, begin)});
            here_.queue.push(at, event_kind::arrive_there, id);
            bytes.erase(0, begin);
        }
        at += way.random.between(0, way.slow_handshakes);
    }
    one.there.last = at;
    one.there.chunks.push_back({at, std::move(bytes)});
    here_.queue.push(at, event_kind::arrive_there, id);
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
            const std::vector<std::int64_t> before = expiries_of(one.master, words_);
            said = there.process.execute(words_, there.wall_us(here_.now));
            said.encode(replies_);
            check_keys(one.master, words_, before);
            note_asked(one.client, words_);
        }
        if (here_.story && words_[0] != "INFO") {
            std::string text = said.describe();
            for (char& c : text) {
                c = c == '\n' ? ' ' : c;
            }
            here_.story.note(
                here_.now,
                "m" + std::to_string(one.master),
                "c" + std::to_string(one.client) + ": " + describe_command(words_) + " -> "
                    + text.substr(0, 60)
                    + (one.client_gone || one.replies_lost ? "   (the reply is lost)" : ""));
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
    here_.queue.push(arrives, event_kind::arrive_back, id);
}

// To each listener by itself, and not to each: what listens to a channel may miss what is said.
std::int64_t network::publish(unsigned master, std::string_view channel, std::string_view text) {
    std::string bytes;
    message(channel, text).encode(bytes);
    const std::vector<audience::listener> listeners = masters_[master].listeners.of(channel);
    for (const audience::listener id : listeners) {
        const unsigned lost = here_.what.air.lost_pushes_percent;
        if (lost != 0 && link_of(connections_[id]).random.percent(lost)) {
            ++here_.count.lost_pushes;
            continue;
        }
        ++here_.count.pushes;
        send_back(id, bytes);
    }
    return static_cast<std::int64_t>(listeners.size());
}

std::string network::take(connection_id id) {
    connection& one = connections_[id];
    std::string bytes;
    if (one.client_gone || link_of(one).blocked_back != 0) {
        return bytes;
    }
    while (one.back.ready(here_.now)) {
        bytes += one.back.chunks[one.back.head++].bytes;
    }
    return bytes;
}

bool network::hang_up(connection_id id) {
    connection& one = connections_[id];
    if (one.client_gone) {
        return false;
    }
    if (link_of(one).blocked_back != 0) {
        here_.queue.push(
            here_.now + link_of(one).random.between(ms, 20 * ms), event_kind::hang_up, id);
        return false;
    }
    one.client_gone = true;
    return true;
}

// Something that was in the way is gone.
void network::retry(connection_id id) {
    here_.queue.push(here_.now, event_kind::arrive_there, id);
    here_.queue.push(here_.now, event_kind::arrive_back, id);
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

bool network::concerns(const fault& what, const connection& one) const noexcept {
    return matches(what.client, one.client) && matches(what.master, one.master)
           && what.cuts(one.kind);
}

void network::partition(const fault& what, bool begins) {
    const auto change = [&](unsigned& count) { begins ? ++count : --count; };
    for_links(what, [&](link& way) {
        if ((what.amount & 1) != 0) {
            change(way.blocked_there);
        }
        if ((what.amount & 2) != 0) {
            change(way.blocked_back);
        }
    });
    for (connection_id id = 0; !begins && id < connections_.size(); ++id) {
        if (concerns(what, connections_[id])) {
            retry(id);
        }
    }
}

void network::refuse(const fault& what, bool begins) {
    for_links(what, [&](link& way) { begins ? ++way.refused : --way.refused; });
}

void network::slow_handshakes(const fault& what, bool begins) {
    for_links(what, [&](link& way) { way.slow_handshakes = begins ? what.amount : 0; });
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
        here_.queue.push(here_.now + link_of(one).random.between(0, ms), event_kind::hang_up, id);
    }
}

void network::stall(int master, bool begins) {
    for (unsigned m = 0; m < masters_.size(); ++m) {
        if (matches(master, m)) {
            begins ? ++masters_[m].stalled : --masters_[m].stalled;
        }
    }
    for (connection_id id = 0; !begins && id < connections_.size(); ++id) {
        if (matches(master, connections_[id].master)) {
            retry(id);
        }
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
                here_.queue.push(here_.now + delay(link_of(one)), event_kind::hang_up, id);
            }
        }
    }
}

void network::boot(unsigned number, std::optional<store> data) {
    master& one = masters_[number];
    store kept = data ? *std::move(data) : store{};
    one.process.restart(new_run_id(number), one.wall_us(here_.now), std::move(kept));
    --one.down;
}

// How long another server has been up that takes a dead master's place.
constexpr std::int64_t long_ago_us = 1000 * sec / us;

void network::promote(unsigned number, store data) {
    master& one = masters_[number];
    one.process.promote(new_run_id(number), one.wall_us(here_.now) - long_ago_us, std::move(data));
    --one.down;
}

void network::take_over(unsigned number) {
    master& one = masters_[number];
    one.process.restart(new_run_id(number), one.wall_us(here_.now) - long_ago_us, {});
    --one.down;
}

// By hand, with a client that no connection here is.
void network::say(int master, std::initializer_list<std::string_view> words) {
    for (unsigned m = 0; m < masters_.size(); ++m) {
        if (matches(master, m) && masters_[m].down == 0) {
            masters_[m].process.execute(
                {words.begin(), words.size()}, masters_[m].wall_us(here_.now));
        }
    }
}

void network::remove_keys(int master, std::int64_t which) {
    for (unsigned m = 0; m < masters_.size(); ++m) {
        std::vector<std::string> found;
        for (const entry& one : masters_[m].process.data.entries()) {
            const std::int64_t kind = one.key == "p:epoch"             ? 4
                                      : one.key.ends_with(":fence")    ? 2
                                      : one.value.size() == token_size ? 1
                                                                       : 0;
            if ((kind & which) != 0) {
                found.push_back(one.key);
            }
        }
        for (const std::string& key : found) {
            if (matches(master, m)) {
                say(static_cast<int>(m), {"DEL", key});
            }
        }
    }
}

void network::hush(int master, bool begins) {
    for (unsigned m = 0; m < masters_.size(); ++m) {
        if (matches(master, m)) {
            masters_[m].process.refuses_publish = begins;
        }
    }
}

void network::let_evict(int master, bool may) {
    for (unsigned m = 0; m < masters_.size(); ++m) {
        if (matches(master, m)) {
            masters_[m].process.info_overrides["maxmemory"] = may ? "1000000" : "0";
            masters_[m].process.info_overrides["maxmemory_policy"] =
                may ? "volatile-lru" : "noeviction";
        }
    }
}

// As under the pressure of other data.
void network::evict(int master) {
    for (unsigned m = 0; m < masters_.size(); ++m) {
        std::vector<std::string> found;
        for (const entry& one : masters_[m].process.data.entries()) {
            if (one.expires_ms != entry::no_expiry && matches(master, m)) {
                found.push_back(one.key);
            }
        }
        masters_[m].process.evicted_keys += found.size();
        for (const std::string& key : found) {
            say(static_cast<int>(m), {"DEL", key});
        }
    }
}

void network::replace(unsigned master, unsigned by) {
    // All ways there are leave a trace in the counters of commands.
    static constexpr std::array<std::string_view, 2> words{"DEBUG", "RELOAD"};
    struct master& one = masters_[master];
    one.process.execute(words, one.wall_us(here_.now));
    one.process.data = masters_[by].process.data;
}

void network::step(int master, std::int64_t by_us) {
    for (unsigned m = 0; m < masters_.size(); ++m) {
        if (matches(master, m)) {
            masters_[m].wall.step(by_us * us);
        }
    }
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
    for (unsigned m = 0; m < masters_.size(); ++m) {
        const std::int64_t now_ms = masters_[m].wall_us(here_.now) / 1000;
        for (const entry& one : masters_[m].process.data.entries()) {
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
                found.push_back("m" + std::to_string(m) + " " + one.key);
            }
        }
    }
    return found;
}

void network::note_attempt(std::string token, nanos began) {
    attempts_.push_back({.token = std::move(token), .began = began});
}

network::attempt* network::find_attempt(std::string_view token) {
    for (auto one = attempts_.rbegin(); one != attempts_.rend(); ++one) {
        if (one->token == token) {
            return &*one;
        }
    }
    return nullptr;
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

void network::note_asked(unsigned client, server::words words) {
    if (here_.what.attempt_within == 0) {
        return;
    }
    for (const lock_write& each : lock_writes_in(words)) {
        for (const std::string_view key : each.keys) {
            if (each.acquires || words[0] == "SET") {
                const std::size_t end = key.ends_with(":readers") ? key.rfind(':') : key.size();
                asked_[std::to_string(client) + " " + std::string(key.substr(0, end))] = here_.now;
            }
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

std::vector<std::int64_t> network::expiries_of(unsigned number, server::words words) {
    std::vector<std::int64_t> found;
    for (const lock_write& what : lock_writes_in(words)) {
        for (const std::string_view key : what.keys) {
            found.push_back(expiry_of(masters_[number], key, what.token));
        }
    }
    return found;
}

// A key that a command wrote or extended must be gone in time.
void network::check_keys(
    unsigned number, server::words words, std::span<const std::int64_t> before) {
    for (const lock_write& what : lock_writes_in(words)) {
        check_key(number, what, before.first(what.keys.size()));
        before = before.subspan(what.keys.size());
    }
}

void network::check_key(
    unsigned number, const lock_write& what, std::span<const std::int64_t> before) {
    master& one = masters_[number];
    std::int64_t expires_ms = -1; // the last of what changed
    std::int64_t kept_ms = -1;
    for (std::size_t i = 0; i < what.keys.size(); ++i) {
        const std::int64_t now_ms = expiry_of(one, what.keys[i], what.token);
        expires_ms = now_ms != before[i] ? std::max(expires_ms, now_ms) : expires_ms;
        kept_ms = std::max(kept_ms, before[i]);
    }
    if (expires_ms <= kept_ms) { // an owner that became a reader keeps what it had
        return;
    }
    const nanos until =
        expires_ms == entry::no_expiry ? no_time : one.wall.when((expires_ms + 1) * ms);
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
    here_.judge.key_stays(here_.now, "m" + std::to_string(number), until, bound);
}

} // namespace simulation
