// The state of a run as text: a picture for terminals, one line a second for everything else.
#pragma once

#include "observer.hpp"
#include "screen.hpp"
#include "site.hpp"
#include "timeline.hpp"

#include <string>
#include <vector>

namespace redlock::soak {

class view {
public:
    view(
        const screen& output,
        site& where,
        const observer& watcher,
        const timeline& events,
        std::string title)
        : screen_(output),
          site_(where),
          observer_(watcher),
          timeline_(events),
          title_(std::move(title)) {}

    // As many lines as it takes, and room for as many events as fit into `rows`.
    std::vector<std::string> picture(std::size_t rows);
    std::string summary_line();

private:
    void add_masters(std::vector<std::string>& lines) const;
    void add_lock(std::vector<std::string>& lines);
    void add_workers(std::vector<std::string>& lines);
    void add_timeline(std::vector<std::string>& lines, std::size_t count) const;
    std::string holders();
    std::string marks(std::string_view signs) const;
    std::string heading(std::string_view text) const { return screen_.paint(style::bold, text); }

    const screen& screen_;
    site& site_;
    const observer& observer_;
    const timeline& timeline_;
    std::string title_;
};

std::string event_line(const screen& output, const event& one);

} // namespace redlock::soak
