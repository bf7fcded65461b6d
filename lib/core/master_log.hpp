// The lines of the log about masters.

#pragma once

#include "engine_callbacks.hpp"
#include "quorum.hpp"
#include "settings.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace redlock::core {

class master_log {
public:
    master_log(const settings& rules, const quorum& masters, log_sink& log) noexcept
        : rules_(rules),
          masters_(masters),
          log_(log) {}

    void noted(std::size_t master, std::string_view text) const;
    void clock_stepped(std::size_t master, std::chrono::microseconds by) const;
    void clocks_stepped(std::size_t masters) const;
    void publish_refused(std::size_t master) const;
    /// Whether it votes has changed.
    void voter_changed(std::size_t master, time_point now) const;
    void members_changed() const;

private:
    void write(log_level level, std::size_t master, std::string_view text) const;

    const settings& rules_;
    const quorum& masters_;
    log_sink& log_;
};

} // namespace redlock::core
