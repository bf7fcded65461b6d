#include "status.hpp"

#include "command_line.hpp"
#include "ending.hpp"
#include "exit_code.hpp"
#include "hints.hpp"
#include "json.hpp"
#include "options.hpp"
#include "session.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <memory>
#include <utility>

namespace cli {
namespace {

template <typename Found>
std::string by_text(const Found& found) {
    return found.readers == 0   ? " by " + found.owner_digest
           : found.readers == 1 ? " by 1 reader"
                                : fmt::format(" by {} readers", found.readers);
}

std::string time_text(const std::optional<milliseconds>& left) {
    return left ? duration_text(*left) + " left" : "no expiry";
}

tint tint_of(redlock::lock_state state) {
    return state == redlock::lock_state::free   ? tint::good
           : state == redlock::lock_state::held ? tint::fair
                                                : tint::bad;
}

std::string verdict_of(const redlock::lock_status& found) {
    std::string out = tinted(tint_of(found.state), to_string(found.state));
    if (!found.slots.empty()) {
        return out
               + fmt::format(
                   ", {} of {} slots held",
                   found.count(redlock::lock_state::held),
                   found.slots.size());
    }
    if (found.state == redlock::lock_state::held) {
        out += by_text(found) + ", " + time_text(found.time_left);
    }
    return out;
}

std::string line_of(const redlock::master_vote& one) {
    std::string out(to_string(one.vote));
    if (one.vote == redlock::vote::held || one.vote == redlock::vote::owned_by_other) {
        if (!one.owner_digest.empty() || one.readers != 0) {
            out += by_text(one);
        }
        out += ", " + time_text(one.time_left);
    } else if (one.time_left && one.text.empty()) {
        out += ", " + time_text(one.time_left);
    }
    if (!one.text.empty()) {
        out += " (" + printable(one.text) + ")";
    }
    return out;
}

struct status_wishes {
    std::vector<std::string> resources;
    std::size_t slots = 0; // of each, which is a pool
    milliseconds interval{500};
};

void check(const std::vector<std::string>& resources) {
    for (const std::string& one : resources) {
        require(redlock::detail::check_resource(one), exit_code::usage);
    }
}

// Ordered by severity.
int worse(int one, int other) {
    const auto rank = [](int status) {
        return status == static_cast<int>(exit_code::no_quorum)   ? 3
               : status == static_cast<int>(exit_code::undecided) ? 2
               : status == 0                                      ? 0
                                                                  : 1;
    };
    return rank(other) > rank(one) ? other : one;
}

int status(const status_wishes& wanted, const settings& common) {
    check(wanted.resources);
    session now(watching_config_of(common));
    now.settle(need::all);
    json all = json::array();
    int out = 0;
    for (const std::string& resource : wanted.resources) {
        redlock::lock_status found;
        try {
            found = wanted.slots == 0 ? query(now, resource)
                                      : query(now, redlock::slots(resource, wanted.slots));
        } catch (const boost::system::system_error& error) {
            return now.signal() != 0 ? by_signal + now.signal()
                                     : ended_with(resource, error.code(), {});
        }
        out = worse(out, status_of(found));
        if (common.json) {
            json one{{"resource", resource}};
            one.update(json_of(found));
            all.push_back(std::move(one));
        } else {
            fmt::print("{}", text_of(resource, found));
            require_written();
        }
        hint_at_status(now.how(), resource, found);
    }
    if (common.json) {
        print(all);
    }
    return out;
}

// What a line shows, without the rest of a lease, which changes without an event.
std::string without_times(const redlock::lock_status& found, bool masters_shown) {
    std::string out =
        found.owner_digest + std::to_string(found.readers) + std::string(to_string(found.state));
    if (masters_shown) {
        for (const auto& one : found.masters) {
            out += fmt::format(
                "|{}|{}|{}|{}", to_string(one.vote), one.owner_digest, one.readers, one.text);
        }
    }
    return out;
}

// The end of a pipe: the reader of `watch | head -1` has gone, and no write has failed yet.
bool unread() {
    pollfd out{STDOUT_FILENO, 0, 0};
    return ::poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

int watch(const status_wishes& wanted, const settings& common) {
    check(wanted.resources);
    constexpr milliseconds shortest{10};
    if (wanted.interval < shortest) { // would query all masters without a pause
        throw failure(
            exit_code::configuration,
            fmt::format(
                "--interval is {}; allowed: {} or more",
                duration_text(wanted.interval),
                duration_text(shortest)));
    }
    session now(watching_config_of(common));
    now.settle(need::all);
    const std::string& resource = wanted.resources.front();
    const bool live = ::isatty(STDOUT_FILENO) == 1 && !common.json;
    std::string before;
    std::size_t lines = 0;
    while (now.signal() == 0) {
        redlock::lock_status found;
        try {
            found = query(now, resource);
        } catch (const boost::system::system_error& error) {
            return now.signal() != 0 ? 0 : ended_with(resource, error.code(), {});
        }
        const std::string now_is = without_times(found, common.json);
        if (live) {
            const std::string text = text_of(resource, found);
            // Overwrites the lines of the last output.
            fmt::print("{}\x1b[J{}", lines == 0 ? "" : fmt::format("\x1b[{}A", lines), text);
            lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
        } else if (now_is != before) {
            const auto at = std::chrono::system_clock::now().time_since_epoch();
            const auto ms = std::chrono::duration_cast<milliseconds>(at).count();
            if (common.json) {
                json one{{"time_ms", ms}, {"resource", resource}};
                one.update(json_of(found));
                print(one);
            } else {
                fmt::print("{}.{:03} {}\n", ms / 1000, ms % 1000, verdict_of(found));
            }
        }
        before = now_is;
        constexpr milliseconds glance{250};
        const auto next = std::chrono::steady_clock::now() + wanted.interval;
        do { // NOLINT(cppcoreguidelines-avoid-do-while)
            if (std::fflush(stdout) != 0) {
                require_written(errno);
            }
            if (unread()) {
                return 0;
            }
            const auto left = next - std::chrono::steady_clock::now();
            now.pause(std::clamp(std::chrono::ceil<milliseconds>(left), milliseconds(0), glance));
        } while (now.signal() == 0 && std::chrono::steady_clock::now() < next);
    }
    return 0;
}

} // namespace

std::string text_of(const std::string& resource, const redlock::lock_status& found) {
    std::string out = fmt::format("{}: {}\n", printable(resource), verdict_of(found));
    std::size_t width = 0;
    for (const auto& one : found.masters) {
        width = std::max(width, one.endpoint.size());
    }
    for (const auto& one : found.masters) {
        const std::string line =
            found.slots.empty() || one.text.empty() ? line_of(one) : printable(one.text);
        fmt::format_to(std::back_inserter(out), "  {:{}}  {}\n", one.endpoint, width, line);
    }
    for (std::size_t i = 0; i < found.slots.size(); ++i) {
        const redlock::slot_status& one = found.slots[i];
        fmt::format_to(
            std::back_inserter(out),
            "  slot {}  {}{}\n",
            i,
            to_string(one.state),
            one.owner_digest.empty() ? "" : " by " + one.owner_digest);
    }
    return out;
}

int status_of(const redlock::lock_status& found) {
    const auto replied = std::ranges::count_if(found.masters, [](const auto& one) {
        return one.vote == redlock::vote::absent || one.vote == redlock::vote::held
               || one.vote == redlock::vote::owned_by_other;
    });
    return static_cast<int>(
        found.state == redlock::lock_state::free                        ? exit_code::done
        : found.state == redlock::lock_state::held                      ? exit_code::held
        : 2 * static_cast<std::size_t>(replied) <= found.masters.size() ? exit_code::no_quorum
                                                                        : exit_code::undecided);
}

void add_status_commands(command_line& to) {
    const auto asked = std::make_shared<status_wishes>();
    CLI::App& asks = to.add(
        "status",
        "Show the holder of a lock, per master and by majority",
        "  redlock status backup cron/clean\n"
        "  redlock status --json backup | jq -r '.[].state'\n"
        "  redlock status --slots 4 encoders\n\n"
        "Exits with 0 if all are free, 200 if one is held, 206 if one is undecided, 201 if too "
        "few\n"
        "masters replied. The result may be out of date when it is printed: do not use it in\n"
        "place of a lock. With a wrong list in --masters it is wrong.");
    asks.add_option("RESOURCE", asked->resources, "Names of resources")->required()->type_name("");
    asks.add_option("--slots", asked->slots, "They are pools of that many slots")
        ->check(whole_number(1, slots_max))
        ->type_name("L");
    to.when(asks, [asked, &to] { return status(*asked, to.common); });

    const auto seen = std::make_shared<status_wishes>();
    seen->resources.resize(1);
    CLI::App& watches = to.add(
        "watch",
        "Show the holder of a lock until Ctrl-C",
        "  redlock watch backup\n"
        "  redlock watch backup > changes.log      # not on a terminal: one line for each change");
    add_resource(watches, seen->resources.front());
    add_duration(watches, "--interval", seen->interval, "Interval of the queries");
    to.when(watches, [seen, &to] { return watch(*seen, to.common); });
}

} // namespace cli
