// Counting what is allocated before and after.
#include "memory.hpp"

#include "redlock_client.hpp"

#include <fmt/format.h>

#include <malloc.h>
#include <unistd.h>

#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t batch = 500;
constexpr std::size_t warm_up = 4 * batch;
constexpr auto settle_time = 500ms;

// Bytes allocated by malloc. Empty if it does not report them (another C library, a sanitizer).
std::optional<std::size_t> allocated() {
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
    const auto found = ::mallinfo2();
    if (found.uordblks > 0) {
        return found.uordblks + found.hblkhd;
    }
#endif
#endif
    return std::nullopt;
}

std::size_t bytes_of(const std::vector<std::string>& names) {
    return std::accumulate(
        names.begin(), names.end(), std::size_t{0}, [](std::size_t sum, const std::string& name) {
            return sum + name.size();
        });
}

// A manager of which many locks are asked.
class holder {
public:
    holder(const plan& asked, side who)
        : manager_(io_.get_executor(), make_config(asked.masters, asked.make_load(who, 1))) {
        options_.ttl = asked.ttl;
        options_.wait = redlock::wait_for::forever();
        options_.fencing = who == side::fenced;
        locks_.reserve(warm_up + asked.memory_locks);
        manager_.async_run([](redlock::error_code) {});
        wait_until_admitted(io_, manager_, asked.masters.size());
    }

    // Returns when all of them are held.
    void hold(const std::vector<std::string>& resources) {
        for (std::size_t i = 0; i < resources.size(); i += batch) {
            const auto end = std::min(i + batch, resources.size());
            const auto wanted = locks_.size() + (end - i);
            for (std::size_t j = i; j < end; ++j) {
                ask(resources[j]);
            }
            io_.restart();
            while (locks_.size() < wanted && !failure_) {
                io_.run_one();
            }
        }
        settle();
    }

    // Returns when this many acquires wait for a lock that is held.
    void queue(const std::string& resource, std::size_t waiters) {
        for (std::size_t i = 0; i < waiters; ++i) {
            ask(resource);
        }
        settle();
        if (!failure_ && manager_.get_metrics().waiting != waiters) {
            failure_ = fmt::format(
                "{} of {} wait for a lock that is held", manager_.get_metrics().waiting, waiters);
        }
    }

    // Empty: none.
    std::string close() {
        auto failure = failure_.value_or("");
        manager_.async_close([this](redlock::error_code) { io_.stop(); });
        io_.restart();
        io_.run();
        return failure;
    }

private:
    void ask(const std::string& resource) {
        manager_.async_acquire(
            resource, options_, [this](redlock::error_code error, redlock::lock acquired) {
                if (error) {
                    failure_ = "acquire: " + error.message();
                } else {
                    locks_.push_back(std::move(acquired));
                }
            });
    }

    void settle() {
        io_.restart();
        io_.run_for(settle_time);
    }

    boost::asio::io_context io_{1};
    redlock::lock_manager manager_;
    redlock::acquire_options options_;
    std::vector<redlock::lock> locks_;
    std::optional<std::string> failure_;
};

double each(std::size_t before, std::size_t names, std::size_t count) {
    const auto more = static_cast<double>(*allocated()) - static_cast<double>(before);
    return (more - static_cast<double>(names)) / static_cast<double>(count);
}

void note(report& all, side who, std::string_view what, const std::string& failure) {
    if (!failure.empty()) {
        all.failures.push_back(fmt::format("memory, {}, {}: {}", what, to_string(who), failure));
    }
}

// The first locks are not counted: what a manager keeps for its busiest moment (buffers, batches,
// the acquires in flight at once) does not grow with the locks that it holds. How many of a batch
// are in flight at once depends on the machine, so there are several.
double per_held_lock(const plan& asked, side who, report& all) {
    const auto names = resource_names(warm_up + asked.memory_locks);
    const std::vector<std::string> first(names.begin(), names.begin() + warm_up);
    const std::vector<std::string> counted(names.begin() + warm_up, names.end());
    holder quorum(asked, who);
    quorum.hold(first);
    const auto before = *allocated();
    quorum.hold(counted);
    const auto found = each(before, bytes_of(counted), counted.size());
    note(all, who, "held lock", quorum.close());
    return found;
}

double per_waiter(const plan& asked, side who, report& all) {
    const auto name = fmt::format("bench-memory-{}", ::getpid());
    holder quorum(asked, who);
    quorum.hold({name});
    const auto before = *allocated();
    quorum.queue(name, asked.memory_locks);
    const auto found = each(before, name.size() * asked.memory_locks, asked.memory_locks);
    note(all, who, "waiter", quorum.close());
    return found;
}

} // namespace

void run_memory(const plan& asked, report& into) {
    if (!allocated() || asked.protocols().empty()) {
        return;
    }
    auto& made = into.tables.emplace_back(table{
        "memory",
        fmt::format("Memory: {} locks, {} waiters", asked.memory_locks, asked.memory_locks),
        "What malloc has given out in this process, after minus before, less one copy of each "
        "resource's name. Held locks each have a resource of their own and are renewed; the "
        "waiters wait for one lock that the same manager holds, with a handler of one pointer. "
        "Buffers that grew on the way count.",
        {"what", "side"},
        {{"bytes_each", "bytes each", 0}},
        {}});
    for (std::size_t round = 1; round <= asked.rounds; ++round) {
        for (const auto who : asked.protocols()) {
            const std::string name(to_string(who));
            asked.progress(fmt::format("memory, {}, round {} of {}", name, round, asked.rounds));
            made.at({"held lock", name}).add("bytes_each", per_held_lock(asked, who, into));
            made.at({"waiter", name}).add("bytes_each", per_waiter(asked, who, into));
        }
    }
}

} // namespace bench
