// Masters that execute the handshake in Lua, and the memberships of clients.

#pragma once

#include "core/bytes/guarded_scripts.hpp"
#include "core/masters/membership.hpp"
#include "core/masters/settings.hpp"
#include "memory/lua_machine.hpp"
#include "memory/server.hpp"
#include "support/test.hpp"
#include "virtual_quorum.hpp"

#include <concepts>
#include <deque>
#include <initializer_list>
#include <sstream>

namespace member_world {

namespace core = redlock::core;
namespace memory = redlock::testing::memory;

inline const std::string record_key = "p::epoch";

struct world {
    explicit world(std::size_t masters) {
        for (std::size_t i = 0; i < masters; ++i) {
            servers.emplace_back(lua);
        }
    }
    std::string ask(std::size_t master, const std::vector<std::string>& words) {
        const std::vector<std::string_view> views(words.begin(), words.end());
        return servers[master].execute(views, ++now).describe();
    }
    std::string record(std::size_t master) { return ask(master, {"GET", record_key}); }
    core::recorded_list list(std::size_t master) {
        const std::string text = record(master);
        return core::read_list(std::string_view(text).substr(text.rfind(' ') + 1));
    }
    std::string new_id() {
        const std::string digits = std::to_string(++ids);
        return std::string(32 - digits.size(), '0') + digits;
    }
    void forget(std::size_t master) { ask(master, {"FLUSHALL"}); }
    void forget(std::initializer_list<std::size_t> masters) {
        for (const std::size_t one : masters) {
            forget(one);
        }
    }

    memory::lua_machine lua;
    std::deque<memory::server> servers;
    std::int64_t now = 1'700'000'000'000'000;
    std::uint64_t ids = 0;
};

inline std::string name_of(std::size_t master) {
    return "m" + std::to_string(master);
}

inline core::member_names names(std::initializer_list<std::size_t> masters) {
    core::member_names out;
    for (const std::size_t one : masters) {
        out.push_back(name_of(one));
    }
    return out;
}

// Writes a record: of this server, as old as can be.
inline void
put(world& all, std::size_t master, const core::recorded_list& list, std::string_view q = "1000") {
    all.ask(
        master,
        {"SET",
         record_key,
         "4 run - 0 " + std::string(q) + ' ' + all.new_id() + core::written(list)});
}

inline void
put(world& all, const std::vector<std::size_t>& masters, const core::recorded_list& list) {
    for (const std::size_t master : masters) {
        put(all, master, list);
    }
}

// One client. A handshake is executed at once; its reply may be read later, in order.
class client {
public:
    client(
        world& all,
        std::vector<std::size_t> masters,
        std::optional<core::member_change> change = std::nullopt)
        : client(all, std::move(masters), [](core::settings&) {}) {
        make(std::move(change));
    }
    template <std::invocable<core::settings&> Choice>
    client(world& all, std::vector<std::size_t> masters, Choice choose)
        : all_(all),
          masters_(std::move(masters)),
          rules_(rules_for(masters_, choose)),
          members_(rules_) {}
    client(const client&) = delete;
    client& operator=(const client&) = delete;

    void make(std::optional<core::member_change> change) { members_.make(std::move(change), now); }
    void read_again() { members_.read_again(); }

    void send(std::size_t i) {
        const std::uint32_t look = members_.look();
        const core::membership::proposal mine = members_.proposal_to(i);
        std::vector<std::string> words{
            "EVAL",
            std::string(core::guarded_handshake.text),
            "1",
            record_key,
            "run",
            "-",
            std::to_string(quarantine.count()),
            mine.unused                                ? "2"
            : members_.enforced() && mine.list.empty() ? "3"
                                                       : "0",
            all_.new_id(),
            mine.list,
            mine.id,
            std::to_string(mine.quarantine.count())};
        all_.ask(masters_[i], words);
        replies_.push_back({i, look, all_.record(masters_[i])});
    }
    void read_all() {
        for (; !replies_.empty(); replies_.pop_front()) {
            const auto& one = replies_.front();
            members_.read(one.master, one.record, one.look, now, quarantine_end(one.record));
        }
    }
    void ask(std::size_t i) {
        send(i);
        read_all();
    }
    void send_all() {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            send(i);
        }
    }
    void ask_all() {
        send_all();
        read_all();
    }
    // The next handshake that makes progress. Returns whether there was one.
    bool step() {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if (members_.wants_handshake(i)) {
                ask(i);
                return true;
            }
        }
        return false;
    }
    // What the quorum does when these masters do not reply, and the others do: each is asked once,
    // and then for as long as that makes progress.
    void settle(const std::vector<std::size_t>& silent = {}) {
        for (int round = 0; round <= 40; ++round) {
            for (std::size_t i = 0; i < masters_.size(); ++i) {
                const bool replies = std::ranges::count(silent, masters_[i]) == 0;
                if (replies && (round == 0 || members_.wants_handshake(i))) {
                    send(i);
                }
            }
            read_all();
        }
    }
    void wait() {
        now = waits() ? std::max(now, members_.next_due()) : now;
        members_.time_passed(now);
    }
    // A change that waits is final then.
    void finish() {
        wait();
        settle();
    }
    std::size_t admitted() const {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            sum += members_.serves(i) ? 1U : 0U;
        }
        return sum;
    }
    bool idle() const {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if (members_.wants_handshake(i)) {
                return false;
            }
        }
        return true;
    }
    std::string why_not(std::size_t i) const { return members_.why_not(i, now); }
    const core::membership& members() const { return members_; }
    const core::settings& rules() const { return rules_; }
    bool waits() const { return members_.next_due() != core::forever; }
    // As it stands in a record, without its state.
    std::string list() const {
        core::generation own{1, rules_.members, {}};
        std::ranges::sort(own.members);
        return core::written({core::recorded_list::state::final, own}).substr(1);
    }

    redlock::time_point now{};
    std::chrono::microseconds quarantine{1000}; // that it asks for

private:
    // By the clock of this client: that of the masters runs with the commands.
    redlock::time_point quarantine_end(const std::string& record) const {
        std::istringstream words(record);
        std::string format;
        std::string run;
        std::string promoted;
        std::int64_t born = 0;
        words >> format >> run >> promoted >> born;
        const std::int64_t left = born + core::recorded_quarantine(record).count() - all_.now;
        return now + std::chrono::microseconds(std::max<std::int64_t>(0, left));
    }
    template <typename Choice>
    static core::settings rules_for(const std::vector<std::size_t>& masters, Choice& choose) {
        core::settings rules = unit::guarded_settings_for(masters.size());
        rules.names.clear();
        for (const std::size_t master : masters) {
            rules.names.push_back(name_of(master));
        }
        rules.members = rules.names;
        choose(rules);
        return rules;
    }

    struct reply {
        std::size_t master;
        std::uint32_t look;
        std::string record;
    };
    world& all_;
    std::vector<std::size_t> masters_;
    core::settings rules_;
    core::membership members_;
    std::deque<reply> replies_;
};

// All masters have replied to it.
struct settled_client : client {
    template <typename... Change>
    settled_client(world& all, std::vector<std::size_t> masters, Change... change)
        : client(all, std::move(masters), std::move(change)...) {
        settle();
    }
};

// A quorum of the first three masters.
struct founded_world : world {
    explicit founded_world(std::size_t masters = 5) : world(masters) {
        settled_client founder(*this, {0, 1, 2});
    }
};

inline const core::generation founded{1, names({0, 1, 2}), {}};
inline const core::member_change add_3{true, "m3"};
inline const core::member_change remove_0{false, "m0"};
inline const core::member_change remove_1{false, "m1"};

} // namespace member_world
