// The scans of slot pools in flight (slot_scan.hpp): sends their commands, one to each master for
// 512 slots, all in one round trip. A scan of an acquire is returned to its owner once it is
// decided; the status of a pool is reported to the caller who asked for it.

#pragma once

#include "engine_callbacks.hpp"
#include "essentials.hpp"
#include "slot_scan.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlock::core {

class slot_scans : essentials {
public:
    explicit slot_scans(const essentials& with) noexcept : essentials(with) {}

    /// \name Of an acquire, which sets the time limit and ends the scan
    /// \{
    /// The scan may be over at once, if too few masters can be asked.
    slot_scan& start(
        handle operation,
        std::string_view pool_key,
        std::uint32_t slots,
        std::uint32_t wanted,
        time_point now);
    slot_scan* find(handle name) noexcept { return scans_.find(name); }
    void end(slot_scan& done) { scans_.destroy(done); }
    /// \}

    /// \name The status of a pool
    /// \{
    void ask(std::uint64_t cookie, std::string_view pool, std::uint32_t slots, time_point now);
    /// The time of a query is up: reports what is known.
    void due(handle name);
    /// Reports what is known to all callers.
    void end_all();
    /// \}

    /// The reply to one command; null if the connection broke before. Returns the scan of an
    /// acquire if that decides it.
    slot_scan* answered(const arrival& at, const reply* answer);

private:
    slot_scan&
    create(std::string_view pool_key, std::uint32_t slots, std::uint32_t wanted, bool with_owners);
    void ask_masters(slot_scan& asking, time_point now);
    void send(const slot_scan& asking, std::size_t master, unsigned command, time_point now);
    void report(slot_scan& done);

    pool<slot_scan> scans_;
};

} // namespace redlock::core
