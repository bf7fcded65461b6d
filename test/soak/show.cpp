#include "show.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace redlock::soak {
namespace {

using namespace std::chrono_literals;

// What a screen has room for. The rest of the picture takes 12 lines, masters and workers.
constexpr std::size_t events_max = 12;
constexpr std::size_t events_min = 4;
constexpr std::size_t other_lines = 12;

// "votes", "down: connection refused", "quarantined, 1.2 s left", ...
std::string text_of(const master_health& master) {
    if (master.state == master_state::admitted) {
        return "votes";
    }
    const std::string_view name = to_string(master.state);
    if (master.quarantine_left) {
        const std::chrono::duration<double> left = *master.quarantine_left;
        return fmt::format("{}, {:.1f} s left", name, left.count());
    }
    return master.text.empty() ? std::string(name) : fmt::format("{}: {}", name, master.text);
}

std::string_view mark_of(vote what) {
    return what == vote::held ? "# " : what == vote::absent ? "- " : "? ";
}

} // namespace

show::show(site& where, timeline& events, const screen& output, std::string title)
    : site_(where),
      timeline_(events),
      screen_(output),
      title_(std::move(title)),
      manager_(io_.get_executor(), quorum_config(where.urls(), where.pace())),
      health_(manager_.get_health()) {
    manager_.async_run([](error_code) {});
    if (screen_.is_terminal()) {
        screen_.print(std::string(screen_.rows(), '\n')); // what was there can be scrolled back to
    }
}

void show::go_on(clock::time_point until) {
    io_.run_until(until);
    look();
    if (screen_.is_terminal() && clock::now() >= next_) {
        screen_.draw(picture());
        next_ = clock::now() + 100ms;
    }
}

// Each change goes into the timeline.
void show::look() {
    const auto before = std::exchange(health_, manager_.get_health());
    for (std::size_t i = 0; i < health_.masters.size(); ++i) {
        const auto state = health_.masters[i].state;
        const auto earlier = before.masters[i].state;
        // Each failing attempt to connect is a state of its own, and of no interest.
        const bool fails_again = state == master_state::down && earlier == master_state::connecting;
        if (state == earlier || state == master_state::connecting || fails_again) {
            continue;
        }
        timeline_.seen(fmt::format("{}: {}", master_name(i), text_of(health_.masters[i])));
        if (state == master_state::admitted && site_.restarted(i) != moment(0)) {
            const moment out = now() - site_.restarted(i);
            kept_out_ = std::min(out, kept_out_.value_or(out));
        }
    }
    if (health_.ready != before.ready) {
        timeline_.seen(fmt::format(
            "quorum {}: {} of {} masters vote, {} needed",
            health_.ready ? "open" : "CLOSED",
            health_.admitted,
            health_.masters.size(),
            health_.quorum));
    }
    if (!asked_) {
        query();
    }
}

void show::query() {
    asked_ = true;
    manager_.async_query(resource, [this](error_code error, lock_status status) {
        asked_ = false;
        if (!error) {
            status_ = std::move(status);
        }
    });
}

std::vector<std::string> show::picture() {
    const findings found = site_.found();
    const std::size_t overlaps = found.overlaps();
    std::vector<std::string> lines;
    lines.push_back(fmt::format("{}   {:.1f} s", heading(title_), timeline_.elapsed().count()));
    lines.push_back(fmt::format(
        "{}   acquisitions {}   writes {}   in vain {}   leases lost {}   stale writes refused {}",
        screen_.paint(
            overlaps == 0 ? style::green : style::red, fmt::format("overlaps {}", overlaps)),
        found.tenures.size(),
        found.written,
        found.failed,
        found.lost,
        found.stale));
    add_masters(lines);
    // First, because a screen that is too small cuts off the end.
    add_timeline(lines);
    add_lock(lines);
    add_workers(lines);
    return lines;
}

void show::add_masters(std::vector<std::string>& lines) const {
    lines.emplace_back();
    lines.push_back(heading(fmt::format("{:<18}{}", "masters", "state")));
    for (std::size_t i = 0; i < health_.masters.size(); ++i) {
        const master_health& one = health_.masters[i];
        lines.push_back(fmt::format(
            "{} {:<16}{}",
            master_name(i),
            one.endpoint,
            screen_.paint(
                one.state == master_state::admitted      ? style::green
                : one.state == master_state::quarantined ? style::yellow
                                                         : style::red,
                text_of(one))));
    }
}

void show::add_timeline(std::vector<std::string>& lines) const {
    lines.emplace_back();
    lines.push_back(heading("what happened"));
    const std::size_t taken = other_lines + site_.masters() + site_.workers();
    const std::size_t rows = screen_.rows();
    const std::size_t count = std::clamp(rows - std::min(rows, taken), events_min, events_max);
    const auto& events = timeline_.events();
    for (std::size_t i = 0; i < count; ++i) {
        // The last ones, from the first line on: the picture below does not jump.
        const std::size_t index = i + events.size() - std::min(events.size(), count);
        lines.push_back(index < events.size() ? event_line(screen_, events[index]) : "");
    }
}

// The owner according to the masters, next to the worker that holds: the masters' reply is older.
void show::add_lock(std::vector<std::string>& lines) {
    std::string said(to_string(status_.state));
    if (status_.state == lock_state::held) {
        said += fmt::format(
            " by {:.6}, {} ms left",
            status_.owner_digest,
            status_.time_left.value_or(std::chrono::milliseconds::zero()).count());
    }
    std::string marks;
    std::string letters;
    for (std::size_t i = 0; i < status_.masters.size(); ++i) {
        marks += mark_of(status_.masters[i].vote);
        letters += master_name(i) + ' ';
    }
    lines.emplace_back();
    lines.push_back(heading(fmt::format("{:<10}{:<16}{}  state", "lock", "holder", letters)));
    lines.push_back(fmt::format("{:<10}{:<16}{}  {}", resource, holders(), marks, said));
    lines.push_back(screen_.paint(style::dim, "# has the key  - does not  ? no vote"));
}

void show::add_workers(std::vector<std::string>& lines) {
    lines.emplace_back();
    lines.push_back(heading(fmt::format("{:<9}{:>8}{:>5}   now", "workers", "acquired", "lost")));
    for (std::size_t i = 0; i < site_.workers(); ++i) {
        const ledger_reader::account& one = site_.account_of(i);
        const std::chrono::duration<double> since = now() - one.since;
        const std::string text = fmt::format(
            "{}, {:.2f} s",
            one.believes()             ? "HAS THE LOCK"
            : one.last == entry::asked ? "waits"
                                       : "rests",
            since.count());
        lines.push_back(fmt::format(
            "worker {:<2}{:>8}{:>5}   {}",
            worker_name(i),
            one.tenures,
            one.lost,
            one.believes() ? screen_.paint(style::cyan, text) : text));
    }
}

// More than one only if the lock is broken, or the one was stopped and does not know yet.
std::string show::holders() {
    std::string text;
    for (std::size_t i = 0; i < site_.workers(); ++i) {
        if (site_.account_of(i).believes()) {
            text += (text.empty() ? "worker " : ", ") + worker_name(i);
        }
    }
    return text.empty() ? "-" : text;
}

std::string event_line(const screen& output, const event& one) {
    return fmt::format(
        "{:6.1f} s  {}",
        one.at.count(),
        one.injected ? output.paint(style::yellow, "FAULT: " + one.text) : one.text);
}

} // namespace redlock::soak
