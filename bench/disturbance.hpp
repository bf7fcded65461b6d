// Some masters of the program's own quorum that do not do their part for a while.
#pragma once

#include "wire.hpp"
#include "workload.hpp"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace bench {

enum class fault_kind {
    none,
    hung,    // the server is stopped
    refused, // no listener
    slow,    // the server is stopped most of the time
};

struct fault {
    fault_kind kind = fault_kind::none;
    std::size_t masters = 0;

    std::string name() const;
};

// How a slow master spends its time. It answers late, by the first at most, and in order; nothing
// but the master itself works more or less than it would.
inline constexpr std::chrono::milliseconds slow_stopped{9};
inline constexpr std::chrono::milliseconds slow_running{1};

// Disturbs the last masters of the quorum, and lets them be again when it is destroyed.
class disturbance {
public:
    disturbance(const plan&, fault);
    disturbance(const disturbance&) = delete;
    ~disturbance() { end(); }

    // Where a client finds the masters: not where they are if they are to refuse.
    const std::vector<address>& masters() const noexcept { return reachable_; }
    // How many can be admitted.
    std::size_t admitted() const noexcept;

    // Masters hang or are slow from here to the end: a client must have been admitted before.
    void begin();
    void end();

private:
    void stop_all();
    void resume_all();
    void pulse();

    bench::masters& own_;
    fault wanted_;
    std::size_t first_;
    std::vector<address> reachable_;
    // Bound and not listening: connections are refused, and no other process can take the port.
    std::vector<descriptor> refusing_;

    std::thread pulse_;
    std::mutex guard_;
    std::condition_variable ended_changed_;
    bool ended_ = false;
};

} // namespace bench
