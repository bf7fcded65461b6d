// The lines of the log about masters.

#pragma once

#include "essentials.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace redlock::core {

class master_log : essentials {
public:
    explicit master_log(const essentials& with) noexcept : essentials(with) {}

    void noted(std::size_t master, std::string_view text) const;
    void clock_stepped(std::size_t master, std::chrono::microseconds by) const;
    void clocks_stepped(std::size_t masters) const;
    void publish_refused(std::size_t master) const;
    /// Whether it votes has changed.
    void voter_changed(std::size_t master, time_point now) const;
    void members_changed() const;

private:
    void write(log_level level, std::size_t master, std::string_view text) const;
};

} // namespace redlock::core
