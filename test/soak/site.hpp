// The place where it happens: real masters, workers and the store, and what can be done to them.
#pragma once

#include "ledger.hpp"
#include "store.hpp"
#include "support/master_process.hpp"
#include "support/network.hpp"
#include "support/process.hpp"
#include "worker.hpp"

namespace redlock::soak {

struct site_options {
    std::filesystem::path program; // this one: it is its own worker
    std::size_t masters = 5;
    std::size_t workers = 6;
    bool namespaces = true; // each master and each worker on a host of its own
    std::uint64_t seed = 0;
    bool slow = false; // else half of the workers sometimes write late; the others ask before
    unsafe how = unsafe::none;
};

/// A, B, C, ...
inline std::string master_name(std::size_t i) {
    return {static_cast<char>(i < 26 ? 'A' + i : 'a' + i - 26)};
}

/// 1, 2, 3, ...
inline std::string worker_name(std::size_t i) {
    return std::to_string(i + 1);
}

class site {
public:
    explicit site(site_options options);

    std::size_t masters() const noexcept { return masters_.size(); }
    std::size_t workers() const noexcept { return workers_.size(); }
    redlock::soak::pace pace() const noexcept { return pace_of(options_.slow); }
    bool has_network() const noexcept { return network_.has_value(); }

    /// Not without a network: its hosts are the masters, then the workers.
    test::network& network() { return network_.value(); }
    std::size_t host_of_worker(std::size_t worker) const { return masters_.size() + worker; }

    test::master_process& master(std::size_t i) { return masters_.at(i); }
    /// With every write fsynced: every other one.
    static bool durable(std::size_t master) { return master % 2 == 0; }
    void restart_master(std::size_t i, bool empty);
    /// The last time; 0: never.
    moment restarted(std::size_t master) const { return restarted_.at(master); }
    std::vector<std::string> urls() const;
    std::string tell_master(std::size_t i, const std::vector<std::string>& command);

    test::child_process& worker(std::size_t i) { return workers_.at(i).process; }
    void start_worker(std::size_t i);
    void kill_worker(std::size_t i);
    /// The worker that got the lock last, and may have it still.
    std::optional<std::size_t> holder();
    /// What a worker has noted since it was started.
    const ledger_reader::account& account_of(std::size_t worker);
    /// What all have noted, as far as that was asked for.
    findings found() const { return ledgers_.found(); }

    store& the_store() { return *store_; }
    /// What workers said that ended by themselves: they never should.
    const std::vector<std::string>& deserters();

    /// Ends the workers, and reads what they wrote.
    findings conclude();

private:
    struct crew_member {
        test::child_process process;
        unsigned incarnation = 0;
        bool wanted = false;
    };

    std::filesystem::path ledger_of(std::size_t worker) const;
    std::filesystem::path output_of(std::size_t worker) const;

    site_options options_;
    test::temp_dir dir_{"redlock-soak-"};
    std::optional<test::network> network_;
    test::master_process vault_;
    std::unique_ptr<store> store_;
    std::vector<test::master_process> masters_;
    std::vector<moment> restarted_;
    std::vector<crew_member> workers_;
    ledger_reader ledgers_;
    std::vector<std::string> deserters_;
};

} // namespace redlock::soak
