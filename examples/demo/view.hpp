// The state of a run as text: a picture for terminals, one line a second for everything else.
#pragma once

#include "board.hpp"
#include "labels.hpp"
#include "observer.hpp"
#include "screen.hpp"
#include "settings.hpp"
#include "timeline.hpp"

#include <string>
#include <vector>

namespace demo {

class view {
public:
    view(
        const screen& output,
        const board& shared,
        const observer& watcher,
        const timeline& events,
        const settings& chosen)
        : screen_(output),
          board_(shared),
          observer_(watcher),
          timeline_(events),
          settings_(chosen) {}

    // As many lines as it takes, and room for as many events as fit into `rows`.
    std::vector<std::string> picture(std::size_t rows) const;
    // What happened since the last call of it.
    std::string summary_line();
    std::string event_line(const event& one) const;

private:
    void add_masters(std::vector<std::string>& lines) const;
    void add_locks(std::vector<std::string>& lines) const;
    void add_workers(std::vector<std::string>& lines) const;
    void add_timeline(std::vector<std::string>& lines, std::size_t count) const;
    std::string worker_line(std::size_t index) const;
    std::string painted(mark what) const;
    std::string master_letters() const;
    std::string heading(std::string_view text) const { return screen_.paint(style::bold, text); }

    const screen& screen_;
    const board& board_;
    const observer& observer_;
    const timeline& timeline_;
    const settings& settings_;
    std::uint64_t acquired_before_ = 0;
};

} // namespace demo
