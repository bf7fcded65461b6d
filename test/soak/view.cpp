#include "view.hpp"

#include "labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace redlock::soak {
namespace {

// On a screen that has room. The rest of the picture takes 12 lines, masters and workers.
constexpr std::size_t events_max = 12;
constexpr std::size_t events_min = 4;
constexpr std::size_t other_lines = 12;

} // namespace

std::vector<std::string> view::picture(std::size_t rows) {
    std::vector<std::string> lines;
    const std::size_t taken = other_lines + site_.masters() + site_.workers();
    const std::size_t left = rows - std::min(rows, taken);
    lines.push_back(fmt::format("{}   {:.1f} s", heading(title_), timeline_.elapsed().count()));
    const findings found = site_.found();
    const std::size_t overlaps = found.overlaps();
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
    add_timeline(lines, std::clamp(left, events_min, events_max));
    add_lock(lines);
    add_workers(lines);
    return lines;
}

void view::add_masters(std::vector<std::string>& lines) const {
    lines.emplace_back();
    lines.push_back(heading(fmt::format("{:<18}{}", "masters", "state")));
    const auto& masters = observer_.health().masters;
    for (std::size_t i = 0; i < masters.size(); ++i) {
        lines.push_back(fmt::format(
            "{} {:<16}{}",
            master_name(i),
            masters[i].endpoint,
            screen_.paint(colour_of(masters[i].state), state_text(masters[i]))));
    }
}

// The owner according to the masters, next to the worker that holds: the masters' reply is older.
void view::add_lock(std::vector<std::string>& lines) {
    const lock_status& status = observer_.status();
    std::string said(to_string(status.state));
    if (status.state == lock_state::held) {
        said += fmt::format(
            " by {:.6}, {} ms left",
            status.owner_digest,
            status.time_left.value_or(std::chrono::milliseconds::zero()).count());
    }
    std::string signs;
    std::string letters;
    for (std::size_t i = 0; i < status.masters.size(); ++i) {
        signs += sign_of(status.masters[i].vote);
        letters += master_name(i) + ' ';
    }
    lines.emplace_back();
    lines.push_back(heading(fmt::format("{:<10}{:<16}{}  state", "lock", "holder", letters)));
    lines.push_back(fmt::format("{:<10}{:<16}{}  {}", resource, holders(), marks(signs), said));
}

void view::add_workers(std::vector<std::string>& lines) {
    lines.emplace_back();
    lines.push_back(heading(fmt::format(
        "{:<9}{:>8}{:>5}   {:<30}{}", "workers", "acquired", "lost", "now", "last acquire")));
    for (std::size_t i = 0; i < site_.workers(); ++i) {
        const ledger_reader::account& one = site_.account_of(i);
        const std::chrono::duration<double> since = now() - one.since;
        const std::string text = fmt::format(
            "{:<30}",
            one.last == entry::none
                ? ""
                : fmt::format("{}, {:.2f} s", text_of(one.last), since.count()));
        const std::size_t signs = std::min(one.report.find(' '), one.report.size());
        lines.push_back(fmt::format(
            "worker {:<2}{:>8}{:>5}   {}{} {}",
            worker_name(i),
            one.tenures,
            one.lost,
            one.believes() ? screen_.paint(style::cyan, text) : text,
            marks(one.report.substr(0, signs)),
            one.report.substr(signs)));
    }
    lines.push_back(screen_.paint(style::dim, legend));
}

void view::add_timeline(std::vector<std::string>& lines, std::size_t count) const {
    lines.emplace_back();
    lines.push_back(heading("what happened"));
    const auto& events = timeline_.events();
    for (std::size_t i = 0; i < count; ++i) {
        // The last ones, from the first line on: the picture below does not jump.
        const std::size_t index = i + events.size() - std::min(events.size(), count);
        lines.push_back(index < events.size() ? event_line(screen_, events[index]) : "");
    }
}

std::string view::summary_line() {
    const std::string holder = holders();
    const findings found = site_.found();
    return fmt::format(
        "{:6.1f} s  acquisitions {}, leases lost {}, overlaps {}, {} of {} masters vote, holder: "
        "{}",
        timeline_.elapsed().count(),
        found.tenures.size(),
        found.lost,
        found.overlaps(),
        observer_.health().admitted,
        site_.masters(),
        holder);
}

// More than one only if the lock is broken, or the one was stopped and does not know yet.
std::string view::holders() {
    std::string text;
    for (std::size_t i = 0; i < site_.workers(); ++i) {
        if (site_.account_of(i).believes()) {
            text += (text.empty() ? "worker " : ", ") + worker_name(i);
        }
    }
    return text.empty() ? "-" : text;
}

std::string view::marks(std::string_view signs) const {
    std::string text;
    for (const char sign : signs) {
        text += screen_.paint(colour_of(sign), {&sign, 1}) + ' ';
    }
    return text;
}

std::string event_line(const screen& output, const event& one) {
    return fmt::format(
        "{:6.1f} s  {}",
        one.at.count(),
        one.injected ? output.paint(style::yellow, "FAULT: " + one.text) : one.text);
}

} // namespace redlock::soak
