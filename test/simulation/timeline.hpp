// What happened, for people: a line per event, with the virtual time and its originator.

#pragma once

#include "plan.hpp"

#include <span>

namespace simulation {

class timeline {
public:
    explicit timeline(bool wanted) noexcept : wanted_(wanted) {}

    /// Check this before building a line: usually no timeline is recorded.
    explicit operator bool() const noexcept { return wanted_; }

    void note(nanos at, std::string_view who, std::string_view what);
    const std::string& text() const noexcept { return text_; }

private:
    bool wanted_;
    std::string text_;
};

/// A command in one line, its script by name.
std::string describe_command(std::span<const std::string_view> words);

} // namespace simulation
