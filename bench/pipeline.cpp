// K slots for each master; a slot's next command leaves when its last one was answered.
#include "pipeline.hpp"

#include "floor_commands.hpp"
#include "floor_connection.hpp"
#include "wire.hpp"

#include <fmt/format.h>

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace bench {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

// No other client has these keys: one token is enough.
constexpr std::string_view token = "0000000000000000000000000000000000000000";
static_assert(token.size() == token_size);

class pipeline_client {
public:
    pipeline_client(const std::vector<address>& masters, const load& work);

    // Keeps all slots busy for this time, and returns with the last reply.
    void run(std::chrono::milliseconds duration);

    result outcome;

private:
    struct slot {
        std::string acquire;
        std::string release;
    };

    void on_reply(floor_connection& from, floor_command command, std::string_view head);
    void send(floor_connection& to, floor_command command);

    std::vector<floor_connection> connections_;
    std::vector<slot> slots_;
    descriptor epoll_;
    clock::time_point stop_at_{};
    std::size_t busy_ = 0;
    std::uint64_t released_ = 0;
};

pipeline_client::pipeline_client(const std::vector<address>& masters, const load& work)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    connections_.reserve(masters.size());
    for (const auto& master : masters) {
        auto& connection = connections_.emplace_back(master);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = connections_.size() - 1;
        if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.fd(), &event) != 0) {
            throw std::runtime_error(fmt::format("epoll_ctl: {}", std::strerror(errno)));
        }
    }
    const release_command release(masters);
    outcome.release_command = release.name();
    const auto ttl = std::to_string(work.ttl.count());
    for (const auto& resource : resource_names(work.in_flight)) {
        const auto key = lock_key(resource);
        slots_.push_back(
            {format_command({"SET", key, token, "NX", "PX", ttl}),
             format_command(release.words(key, token))});
    }
}

void pipeline_client::run(std::chrono::milliseconds duration) {
    stop_at_ = clock::now() + duration;
    released_ = 0;
    for (auto& connection : connections_) {
        for (std::uint32_t i = 0; i < slots_.size(); ++i) {
            ++busy_;
            send(connection, {i, 0});
        }
    }
    std::array<epoll_event, 64> events;
    while (busy_ > 0) {
        bool blocked = false;
        for (auto& connection : connections_) {
            connection.flush();
            blocked = blocked || connection.blocked();
        }
        const int n = ::epoll_wait(epoll_.get(), events.data(), events.size(), blocked ? 1 : -1);
        if (n < 0 && errno != EINTR) {
            throw std::runtime_error(fmt::format("epoll_wait: {}", std::strerror(errno)));
        }
        for (int i = 0; i < n; ++i) {
            auto& from = connections_[events[static_cast<std::size_t>(i)].data.u64];
            from.receive([&](floor_command command, const reply_view& reply) {
                on_reply(from, command, reply.head);
            });
        }
    }
    outcome.pairs = released_ / connections_.size();
}

void pipeline_client::send(floor_connection& to, floor_command command) {
    const auto& chosen = slots_[command.slot];
    to.queue(command.step == 0 ? chosen.acquire : chosen.release, command);
}

void pipeline_client::on_reply(
    floor_connection& from, floor_command command, std::string_view head) {
    const bool acquired = command.step == 0;
    if (head != (acquired ? "+OK" : ":1") && outcome.failures++ == 0) {
        outcome.first_failure = fmt::format(
            "{} was answered with '{}'", acquired ? "SET" : outcome.release_command, head);
    }
    if (acquired) {
        send(from, {command.slot, 1});
        return;
    }
    ++released_;
    if (clock::now() < stop_at_) {
        send(from, {command.slot, 0});
    } else {
        --busy_;
    }
}

} // namespace

result run_pipeline(const std::vector<address>& masters, const load& work) {
    require_valid(work);
    pipeline_client client(masters, work);
    client.run(work.warm_up);
    const auto usage_before = read_usage(masters);
    const auto cpu_before = process_cpu_time();
    const auto started = clock::now();
    client.run(work.duration);
    client.outcome.elapsed = clock::now() - started;
    client.outcome.cpu = process_cpu_time() - cpu_before;
    client.outcome.servers = read_usage(masters) - usage_before;
    if (work.check) {
        client.outcome.keys_left = count_lock_keys(masters, resource_names(work.in_flight));
    }
    return std::move(client.outcome);
}

} // namespace bench
