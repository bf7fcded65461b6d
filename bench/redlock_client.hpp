// A client of the library: a manager on an io_context of its own, and loops that acquire and
// release locks with plain callbacks on the caller's thread.
#pragma once

#include "load.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace bench {

redlock::config make_config(const std::vector<address>& masters, const load& work);

// Runs the context until that many masters are admitted. Throws std::runtime_error after a timeout.
void wait_until_admitted(
    boost::asio::io_context&, const redlock::lock_manager&, std::size_t masters);

class redlock_client {
public:
    // Waits until `admitted` masters are admitted. Throws std::runtime_error after a timeout.
    redlock_client(const std::vector<address>& masters, const load& work, std::size_t admitted);
    redlock_client(const std::vector<address>& masters, const load& work)
        : redlock_client(masters, work, masters.size()) {}
    redlock_client(const redlock_client&) = delete;
    ~redlock_client();

    // Runs pairs for `duration` or up to `pairs_max`, and returns when the last one has ended.
    void run(std::chrono::milliseconds duration, std::size_t pairs_max, bool sampled);
    // One attempt to acquire a lock, released at once. The error is the result of the attempt.
    redlock::error_code try_once(const std::string& resource);
    // Acquires one lock and looks for its key with another client. Proves that `check` looks for
    // the right keys.
    void require_known_key(const std::vector<address>& masters, const std::string& resource);
    // Waits for outstanding replies.
    void settle();
    std::uint64_t raised() const { return manager_.get_metrics().raised; }
    void close();

    boost::asio::io_context& context() noexcept { return io_; }
    redlock::lock_manager& manager() noexcept { return manager_; }

    result outcome;

private:
    struct run_state;
    class pair_loop;

    boost::asio::io_context io_{1};
    redlock::lock_manager manager_;
    std::unique_ptr<run_state> run_;
    std::vector<std::unique_ptr<pair_loop>> loops_;
    bool closed_ = false;
};

} // namespace bench
