// The floor's loops: K slots that acquire and release over all masters, driven by one epoll set.
#include "floor.hpp"

#include "floor_commands.hpp"
#include "floor_connection.hpp"
#include "wire.hpp"

#include <fmt/format.h>

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <stdexcept>

namespace bench {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto drain_limit = 2s;
constexpr std::size_t token_counter_size = 16;
constexpr std::size_t events_max = 64;

struct slot {
    command_template acquire;
    command_template release;
    clock::time_point started{};
    // Even: acquiring. Odd: releasing. One more with every command, so that a straggler's reply
    // is recognised.
    std::uint32_t step = 0;
    std::uint32_t positive = 0;
    std::uint32_t negative = 0;
    bool granted = false;
};

class floor_client {
public:
    floor_client(const std::vector<address>& masters, const load& work);

    // Starts pairs for a time, or a number of them, and returns when the last one has ended.
    void run(std::chrono::milliseconds duration, std::size_t pairs_max, bool sampled);
    // Waits for the stragglers' replies.
    void drain();

    result outcome;

private:
    void start_acquire(std::uint32_t index);
    std::string_view next_token();
    void send_to_all(const command_template& command, std::uint32_t index);
    void on_reply(floor_command command, const reply_view& reply);
    void decide(std::uint32_t index, bool won);
    void turn(int timeout_ms);
    void note_failure(std::string text);

    std::size_t quorum_;
    std::vector<floor_connection> connections_;
    std::vector<slot> slots_;
    descriptor epoll_;
    std::string token_;
    std::uint64_t tokens_made_ = 0;

    std::size_t pairs_left_ = 0;
    std::size_t busy_slots_ = 0;
    bool unlimited_pairs_ = false;
    bool sampled_ = false;
    clock::time_point stop_at_{};
};

floor_client::floor_client(const std::vector<address>& masters, const load& work)
    : quorum_(masters.size() / 2 + 1),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
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
    std::random_device random;
    while (token_.size() < token_size) {
        token_ += fmt::format("{:08x}", static_cast<std::uint32_t>(random()));
    }
    const release_command release(masters);
    outcome.release_command = release.name();
    const auto ttl = std::to_string(work.ttl.count());
    slots_.reserve(work.in_flight);
    for (const auto& resource : resource_names(work.in_flight)) {
        const auto key = lock_key(resource);
        slots_.push_back(slot{
            command_template({"SET", key, token_, "NX", "PX", ttl}, token_),
            command_template(release.words(key, token_), token_),
        });
    }
}

void floor_client::run(std::chrono::milliseconds duration, std::size_t pairs_max, bool sampled) {
    pairs_left_ = pairs_max;
    unlimited_pairs_ = pairs_max == 0;
    sampled_ = sampled;
    busy_slots_ = slots_.size();
    stop_at_ = duration > 0ms ? clock::now() + duration : clock::time_point::max();
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
        start_acquire(i);
    }
    while (busy_slots_ > 0) {
        turn(-1);
    }
}

void floor_client::drain() {
    const auto give_up_at = clock::now() + drain_limit;
    const auto unanswered = [this] {
        std::size_t sum = 0;
        for (const auto& connection : connections_) {
            sum += connection.unanswered();
        }
        return sum;
    };
    while (unanswered() > 0 && clock::now() < give_up_at) {
        turn(10);
    }
    outcome.unanswered += unanswered();
}

// One epoll turn: all replies that are there, then all commands they made due.
void floor_client::turn(int timeout_ms) {
    bool blocked = false;
    for (auto& connection : connections_) {
        connection.flush();
        blocked = blocked || connection.blocked();
    }
    std::array<epoll_event, events_max> events;
    // A full socket is rare and short; asking again beats two more calls for each such turn.
    const int n =
        ::epoll_wait(epoll_.get(), events.data(), events.size(), blocked ? 1 : timeout_ms);
    if (n < 0 && errno != EINTR) {
        throw std::runtime_error(fmt::format("epoll_wait: {}", std::strerror(errno)));
    }
    for (int i = 0; i < n; ++i) {
        connections_[events[static_cast<std::size_t>(i)].data.u64].receive(
            [this](floor_command command, const reply_view& reply) { on_reply(command, reply); });
    }
}

void floor_client::start_acquire(std::uint32_t index) {
    auto& chosen = slots_[index];
    const auto now = clock::now();
    if ((!unlimited_pairs_ && pairs_left_ == 0) || now >= stop_at_) {
        --busy_slots_;
        return;
    }
    --pairs_left_;
    const auto token = next_token();
    chosen.acquire.set_token(token);
    chosen.release.set_token(token);
    chosen.started = now;
    send_to_all(chosen.acquire, index);
}

// Never the same one twice, and no more work than that.
std::string_view floor_client::next_token() {
    std::uint64_t rest = ++tokens_made_;
    for (std::size_t i = 0; i < token_counter_size; ++i, rest >>= 4U) {
        token_[token_size - 1 - i] = "0123456789abcdef"[rest & 15U];
    }
    return token_;
}

void floor_client::send_to_all(const command_template& command, std::uint32_t index) {
    auto& chosen = slots_[index];
    chosen.positive = 0;
    chosen.negative = 0;
    for (auto& connection : connections_) {
        connection.queue(command.bytes(), {index, chosen.step});
    }
}

void floor_client::on_reply(floor_command command, const reply_view& reply) {
    const bool acquiring = command.step % 2 == 0;
    const bool positive = reply.head == (acquiring ? "+OK" : ":1");
    if (!positive) {
        note_failure(fmt::format(
            "{} was answered with '{}'", acquiring ? "SET" : outcome.release_command, reply.head));
    }
    auto& chosen = slots_[command.slot];
    if (command.step != chosen.step) {
        return;
    }
    ++(positive ? chosen.positive : chosen.negative);
    if (chosen.positive == quorum_) {
        decide(command.slot, true);
    } else if (chosen.negative > connections_.size() - quorum_) {
        decide(command.slot, false);
    }
}

void floor_client::decide(std::uint32_t index, bool won) {
    auto& chosen = slots_[index];
    const bool acquiring = chosen.step % 2 == 0;
    ++chosen.step;
    if (acquiring) {
        chosen.granted = won;
        if (won && sampled_) {
            const std::chrono::nanoseconds took = clock::now() - chosen.started;
            outcome.acquire_ns.push_back(static_cast<std::uint32_t>(took.count()));
        }
        send_to_all(chosen.release, index);
        return;
    }
    outcome.pairs += chosen.granted && won ? 1 : 0;
    start_acquire(index);
}

void floor_client::note_failure(std::string text) {
    if (outcome.failures++ == 0) {
        outcome.first_failure = std::move(text);
    }
}

} // namespace

result run_floor(const std::vector<address>& masters, const load& work) {
    require_valid(work);
    floor_client client(masters, work);
    if (work.warm_up > 0ms) {
        client.run(work.warm_up, 0, false);
        client.drain();
    }
    // Failures of the warm-up stay: they are failures.
    client.outcome.pairs = 0;
    client.outcome.acquire_ns.reserve(1 << 20);
    const auto usage_before = read_usage(masters);
    const auto cpu_before = process_cpu_time();
    const auto started = clock::now();
    client.run(work.duration, work.pairs_max, true);
    client.outcome.elapsed = clock::now() - started;
    client.outcome.cpu = process_cpu_time() - cpu_before;
    client.drain();
    client.outcome.servers = read_usage(masters) - usage_before;
    if (work.check) {
        client.outcome.keys_left = count_lock_keys(masters, resource_names(work.in_flight));
    }
    return std::move(client.outcome);
}

} // namespace bench
