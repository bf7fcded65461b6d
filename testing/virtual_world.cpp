#include "virtual_world.hpp"

#include "core/bytes/keys.hpp"
#include "core/masters/membership.hpp"
#include "manager/manager_access.hpp"
#include "manager/manager_impl.hpp"

#include <boost/asio/detached.hpp>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing {

using namespace std::chrono_literals;

// --- The connections of one manager -------------------------------------------------------------

virtual_backend::virtual_backend(virtual_world& all, net::socket_callbacks& owner)
    : all_(all),
      owner_(owner),
      connections_(2 * all.masters.size()) {
    for (std::size_t i = 0; i < connections_.size(); ++i) {
        connections_[i].outside = this;
        connections_[i].socket = i;
    }
}

virtual_backend::~virtual_backend() {
    for (connection& one : connections_) {
        end(one);
    }
}

memory_master& virtual_backend::master_of(const connection& one) const {
    return *all_.masters[one.socket % all_.masters.size()];
}

void virtual_backend::later(
    agenda& when, time_point moment, connection& one, std::function<void(connection&)> f) {
    when.emplace(moment, [owner = owner_.weak_from_this(), &one, id = one.id, f = std::move(f)] {
        const auto alive = owner.lock();
        if (alive && one.id == id) {
            f(one);
        }
    });
}

void virtual_backend::open(std::size_t socket) {
    connection& one = connections_[socket];
    end(one);
    one.id = all_.next_connection++;
    later(
        all_.client_events, all_.now() + master_of(one).round_trip, one, [this](connection& here) {
            memory_master& there = master_of(here);
            const net::socket_callbacks::section lock(owner_);
            if (there.down) {
                end(here);
                owner_.socket_closed(here.socket, "connection refused");
                return;
            }
            here.accepted = true;
            there.connected.emplace(here.id, &here);
            owner_.socket_opened(here.socket);
        });
}

void virtual_backend::close(std::size_t socket) {
    end(connections_[socket]);
}

void virtual_backend::end(connection& one) {
    memory_master& there = master_of(one);
    there.ears.leave(one.id);
    there.connected.erase(one.id);
    one.id = 0;
    one.accepted = false;
    one.inbox.clear();
    one.last_command = one.last_reply = {};
}

std::size_t virtual_backend::write(std::size_t socket, std::string& bytes) {
    connection& one = connections_[socket];
    if (!one.accepted) {
        return 0;
    }
    const std::size_t size = bytes.size();
    // Bytes stay in order even if the round trip time was reduced since.
    one.last_command = std::max(one.last_command, all_.now() + master_of(one).round_trip / 2);
    later(
        all_.master_events,
        one.last_command,
        one,
        [this, text = std::exchange(bytes, {})](connection& there) {
            there.inbox += text;
            read_from(there);
        });
    return size;
}

void virtual_backend::read_from(connection& one) {
    memory_master& there = master_of(one);
    if (there.hung || !one.accepted) {
        return;
    }
    std::size_t at = 0;
    std::string said;
    std::vector<std::string_view> words;
    while (memory::take_command(one.inbox, at, words)) {
        if (const auto confirmed = there.ears.execute(one.id, words)) {
            for (const memory::answer& each : *confirmed) {
                each.encode(said);
            }
        } else {
            there.process.execute(words, all_.wall_us()).encode(said);
        }
    }
    one.inbox.erase(0, at);
    if (!said.empty()) {
        send_back(one, std::move(said));
    }
}

void virtual_backend::send_back(connection& one, std::string bytes) {
    one.last_reply = std::max(one.last_reply, all_.now() + master_of(one).round_trip / 2);
    later(
        all_.client_events, one.last_reply, one, [this, text = std::move(bytes)](connection& here) {
            const net::socket_callbacks::section lock(owner_);
            owner_.socket_received(here.socket, text);
            owner_.all_received();
        });
}

void virtual_backend::cut(connection& one) {
    memory_master& there = master_of(one);
    there.ears.leave(one.id);
    there.connected.erase(one.id);
    one.accepted = false;
    one.id = all_.next_connection++; // bytes in flight do not arrive
    later(all_.client_events, all_.now(), one, [this](connection& here) {
        const net::socket_callbacks::section lock(owner_);
        end(here);
        owner_.socket_closed(here.socket, "connection reset by peer");
    });
}

void virtual_backend::wake_by(time_point moment) {
    all_.late_wakes += moment <= all_.now() ? 1U : 0U;
    if (moment >= armed_) {
        return;
    }
    armed_ = moment;
    all_.client_events.emplace(moment, [this, owner = owner_.weak_from_this(), moment] {
        const auto alive = owner.lock();
        if (!alive || armed_ != moment) {
            return;
        }
        const net::socket_callbacks::section lock(owner_);
        armed_ = time_point::max();
        owner_.time_came();
    });
}

void virtual_backend::random(std::span<unsigned char> out) {
    for (unsigned char& byte : out) {
        all_.random = all_.random * 6364136223846793005U + 1442695040888963407U;
        byte = static_cast<unsigned char>(all_.random >> 56U);
    }
}

// --- The world -----------------------------------------------------------------------------------

virtual_world::virtual_world(std::size_t count, config given) : settings(std::move(given)) {
    settings.masters.clear();
    core::generation first{1, {}, {}};
    for (std::size_t i = 0; i < count; ++i) {
        settings.masters.emplace_back("redis://master-" + std::to_string(i));
        first.members.push_back(to_string(settings.masters.back()));
    }
    validate(settings);
    std::ranges::sort(first.members);
    const std::string list = core::written({core::recorded_list::state::final, first});
    for (std::size_t i = 0; i < count; ++i) {
        memory_master& made = *masters.emplace_back(std::make_unique<memory_master>(lua));
        restart(i, false);
        made.process.started_us = wall_us() - std::chrono::microseconds(48h).count();
        made.process.data.put(core::record_key(settings.key_prefix)).value =
            core::record_of_new_server(made.process.run_id, list);
        made.process.tell = [&made](std::string_view channel, std::string_view text) {
            std::string bytes;
            memory::message(channel, text).encode(bytes);
            const auto ears = made.ears.of(channel);
            for (const memory::audience::listener id : ears) {
                made.connected.at(id)->send_back(bytes);
            }
            return static_cast<std::int64_t>(ears.size());
        };
    }
}

virtual_world::~virtual_world() {
    // Pending events may own sleepers, whose handlers must be destroyed while the context still
    // exists.
    const agenda dropped = std::exchange(client_events, {});
}

// Starts in 2023: a clock at 0 would mean "unknown".
std::int64_t virtual_world::wall_us() const noexcept {
    constexpr std::int64_t base_us = 1'700'000'000'000'000;
    return base_us
           + std::chrono::duration_cast<std::chrono::microseconds>(now().time_since_epoch())
                 .count();
}

bool virtual_world::run_until(time_point until, const std::function<bool()>& done) {
    if (std::exchange(running, true)) {
        throw std::logic_error(
            "redlock: a handler must not advance virtual time; advance it from the test");
    }
    struct ended {
        bool& flag;
        ~ended() { flag = false; }
    } const at_end{running};
    for (;;) {
        context.restart();
        context.poll();
        if (done && done()) {
            return true;
        }
        const bool masters_first =
            !master_events.empty()
            && (client_events.empty()
                || master_events.begin()->first <= client_events.begin()->first);
        agenda& next = masters_first ? master_events : client_events;
        if (next.empty() || next.begin()->first > until) {
            set_now(std::max(now(), until));
            return done && done();
        }
        const auto event = next.extract(next.begin());
        set_now(std::max(now(), event.key()));
        event.mapped()();
    }
}

void virtual_world::freeze(time_point until) {
    if (running) {
        throw std::logic_error(
            "redlock: a handler must not advance virtual time; advance it from the test");
    }
    while (!master_events.empty() && master_events.begin()->first <= until) {
        const auto event = master_events.extract(master_events.begin());
        set_now(std::max(now(), event.key()));
        event.mapped()();
    }
    set_now(std::max(now(), until));
}

lock_manager virtual_world::make_manager() {
    const auto make = [this](net::socket_callbacks& owner) {
        return std::make_unique<virtual_backend>(*this, owner);
    };
    return detail::manager_access::make(std::make_shared<detail::manager_impl>(
        context.get_executor(), settings, detail::time_source(now_), make));
}

lock_manager& virtual_world::add_manager() {
    lock_manager& made = managers.emplace_back(make_manager());
    made.async_run(boost::asio::detached);
    const auto admitted = [&] { return made.get_health().admitted == masters.size(); };
    const bool all_up =
        std::ranges::none_of(masters, [](const auto& one) { return one->down || one->hung; });
    run_until(now() + 1min, [&] { return all_up ? admitted() : made.get_health().ready; });
    return made;
}

void virtual_world::each_connection(memory_master& there, const std::function<void(listener&)>& f) {
    for (const auto& [id, one] : std::map(there.connected)) {
        f(*one);
    }
}

void virtual_world::kill(memory_master& there) {
    there.down = true;
    there.hung = false;
    each_connection(there, [](listener& one) { one.cut(); });
}

void virtual_world::restart(std::size_t index, bool keeps) {
    memory_master& there = *masters.at(index);
    kill(there);
    std::string id = std::to_string(index) + "-" + std::to_string(there.boots++) + "-";
    id.resize(40, '0'); // as long as a real run id
    there.process.restart(std::move(id), wall_us(), keeps ? there.process.data : memory::store());
    there.down = false;
}

std::string virtual_world::command(memory_master& there, const std::vector<std::string>& words) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    return there.process.execute(views, wall_us()).describe();
}

std::string virtual_world::key(std::string_view resource) const {
    std::string name;
    core::assign_lock_key(name, settings.key_prefix, resource);
    return name;
}

}}} // namespace redlock::REDLOCK_ABI::testing
