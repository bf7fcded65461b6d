#include "view.hpp"

#include "labels.hpp"
#include "masters.hpp"
#include "totals.hpp"
#include "worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace demo {
namespace {

using seconds = std::chrono::duration<double>;

// On a screen that has room. The rest of the picture takes 19 lines, masters and workers.
constexpr std::size_t events_max = 9;
constexpr std::size_t events_min = 4;
constexpr std::size_t other_lines = 19;

} // namespace

std::vector<std::string> view::picture(std::size_t rows) const {
    std::vector<std::string> lines;
    const std::size_t taken = other_lines + settings_.masters + settings_.workers;
    const std::size_t left = rows - std::min(rows, taken);
    const auto total = total_of(board_, settings_.workers);
    lines.push_back(fmt::format(
        "{}  {} masters, {} workers in {} processes, ttl {} ms{}   {:.1f} of {} s",
        heading("redlock demo"),
        settings_.masters,
        settings_.workers,
        settings_.workers,
        ttl.count(),
        settings_.unlocked ? ", WITHOUT LOCKS" : "",
        timeline_.elapsed().count(),
        settings_.seconds.count()));
    lines.push_back(fmt::format(
        "{}   increments {}   acquisitions {}   contended {}   no quorum {}   lost {}",
        screen_.paint(
            total.overlaps == 0 ? style::green : style::red,
            fmt::format("overlaps {}", total.overlaps)),
        total.written,
        total.acquired,
        total.contended,
        total.no_quorum,
        total.lost));
    add_masters(lines);
    // Above the rest, which is cut off first where there is no room.
    add_timeline(lines, std::clamp(left, events_min, events_max));
    add_locks(lines);
    add_workers(lines);
    return lines;
}

void view::add_masters(std::vector<std::string>& lines) const {
    lines.emplace_back();
    lines.push_back(heading(fmt::format(
        "{:<17}{:>9}{:>8}{:>8}   {}", "masters", "granted", "held", "failed", "state")));
    const auto& masters = observer_.health().masters;
    for (std::size_t i = 0; i < masters.size(); ++i) {
        const auto votes = votes_of(board_, settings_.workers, i);
        const auto& one = masters[i];
        lines.push_back(fmt::format(
            "{} {:<15}{:>9}{:>8}{:>8}   {}",
            master_name(i),
            one.endpoint,
            votes.granted,
            votes.held,
            votes.failed,
            screen_.paint(colour_of(one.state), state_text(one))));
    }
}

// The owners according to the masters, next to the workers that hold: the masters' reply is older.
void view::add_locks(std::vector<std::string>& lines) const {
    lines.emplace_back();
    lines.push_back(heading(fmt::format(
        "{:<10}{:>7}   {:<11}{}  {}", "locks", "value", "holder", master_letters(), "state")));
    for (std::size_t i = 0; i < counters_max; ++i) {
        const auto& status = observer_.lock_of(i);
        std::string said(redlock::to_string(status.state));
        if (status.state == redlock::lock_state::held) {
            said += fmt::format(
                " by {:.6}, {} ms left",
                status.owner,
                status.time_left.value_or(std::chrono::milliseconds::zero()).count());
        }
        std::string marks;
        for (const auto& master : status.masters) {
            marks += painted(mark_of(master.vote)) + " ";
        }
        const auto owner = board_.counters[i].owner();
        lines.push_back(fmt::format(
            "{:<10}{:>7}   {:<11}{}  {}",
            counter_name(i),
            board_.counters[i].read(),
            owner == 0 ? "-" : fmt::format("worker {}", owner),
            marks,
            said));
    }
}

void view::add_workers(std::vector<std::string>& lines) const {
    lines.emplace_back();
    lines.push_back(heading(fmt::format(
        "{:<9}{:>8}{:>5}   {:<28}{} {}",
        "workers",
        "acquired",
        "lost",
        "now",
        master_letters(),
        "last acquire (attempts)")));
    for (std::size_t i = 0; i < settings_.workers; ++i) {
        lines.push_back(worker_line(i));
    }
    lines.push_back(screen_.paint(
        style::dim,
        "+ granted  # held  - absent  x unreachable  t timed out  q quarantined  . pending  "
        "? other owner  ! error"));
}

std::string view::worker_line(std::size_t index) const {
    const auto& slot = board_.workers[index];
    const activity doing = slot.doing;
    const bool holds = doing == activity::working || doing == activity::writing;
    std::string now(text_of(doing));
    if (holds || doing == activity::waiting) {
        const seconds since =
            redlock::clock::now().time_since_epoch() - redlock::clock::duration(slot.since.load());
        now += fmt::format(" {}, {:.2f} s", counter_name(slot.counter), since.count());
    }
    now = fmt::format("{:<28}", now);
    const result last = slot.last_result;
    std::string marks;
    for (std::size_t i = 0; i < settings_.masters; ++i) {
        marks += last == result::nothing ? "  " : painted(mark_of(slot.last_votes[i])) + " ";
    }
    return fmt::format(
        "worker {:<2}{:>8}{:>5}   {}{} {}",
        index + 1,
        slot.acquired.load(),
        slot.lost.load(),
        holds ? screen_.paint(style::cyan, now) : now,
        marks,
        last == result::nothing ? "-"
                                : fmt::format("{} ({})", text_of(last), slot.last_attempts.load()));
}

void view::add_timeline(std::vector<std::string>& lines, std::size_t count) const {
    lines.emplace_back();
    lines.push_back(heading("what happened"));
    const auto& events = timeline_.events();
    for (std::size_t i = 0; i < count; ++i) {
        // The last ones, from the first line on: the picture below does not jump.
        const std::size_t index = i + events.size() - std::min(events.size(), count);
        lines.push_back(index < events.size() ? event_line(events[index]) : "");
    }
}

std::string view::event_line(const event& one) const {
    return fmt::format(
        "{:6.1f} s  {}",
        one.at.count(),
        one.injected ? screen_.paint(style::yellow, "FAULT: " + one.text) : one.text);
}

std::string view::summary_line() {
    const auto total = total_of(board_, settings_.workers);
    std::string line = fmt::format(
        "{:6.1f} s  acquired {} (+{}), lost {}, overlaps {} | votes",
        timeline_.elapsed().count(),
        total.acquired,
        total.acquired - acquired_before_,
        total.lost,
        total.overlaps);
    acquired_before_ = total.acquired;
    const auto& masters = observer_.health().masters;
    for (std::size_t i = 0; i < masters.size(); ++i) {
        const auto votes = votes_of(board_, settings_.workers, i);
        line +=
            fmt::format(" {} {}/{}/{}", master_name(i), votes.granted, votes.held, votes.failed);
    }
    line += " |";
    for (std::size_t i = 0; i < counters_max; ++i) {
        const auto owner = board_.counters[i].owner();
        line += fmt::format(
            " {}: {}", counter_name(i), owner == 0 ? "nobody" : fmt::format("worker {}", owner));
    }
    return line;
}

std::string view::painted(mark what) const {
    return screen_.paint(what.look, std::string_view(&what.sign, 1));
}

std::string view::master_letters() const {
    std::string letters;
    for (std::size_t i = 0; i < settings_.masters; ++i) {
        letters += fmt::format("{} ", master_name(i));
    }
    return letters;
}

} // namespace demo
