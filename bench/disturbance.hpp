// Injects faults into some masters of the program's own quorum.
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

// How a slow master spends its time. It replies in order, at most `slow_stopped` late. Clients and
// network are not affected.
inline constexpr std::chrono::milliseconds slow_stopped{9};
inline constexpr std::chrono::milliseconds slow_running{1};

// Injects the fault into the last masters of the quorum, and ends it in the destructor.
class disturbance {
public:
    disturbance(const plan&, fault);
    disturbance(const disturbance&) = delete;
    ~disturbance() { end(); }

    // The addresses for clients. For `refused` they are ports without a listener.
    const std::vector<address>& masters() const noexcept { return reachable_; }
    // Number of masters that can be admitted.
    std::size_t admitted() const noexcept;

    // Starts `hung` and `slow`, until `end`. Clients must have admitted the masters before.
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
