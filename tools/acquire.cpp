#include "acquire.hpp"

#include "command_line.hpp"
#include "ending.hpp"
#include "exit_code.hpp"
#include "hints.hpp"
#include "json.hpp"
#include "options.hpp"
#include "patience.hpp"
#include "session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

namespace cli {
namespace {

struct acquire_wishes {
    lock_wishes lock;
    std::string token;
};

milliseconds left_of(const redlock::lock& lock) {
    return std::chrono::floor<milliseconds>(lock.remaining());
}

json found_of(const acquire_wishes& mine, const redlock::lock& lock) {
    json out{
        {"resource", mine.lock.resource},
        {"token", lock.secret()},
        {"valid_ms", left_of(lock).count()}};
    if (mine.lock.fencing) {
        out["fencing_token"] = lock.fencing_token();
    }
    return out;
}

int refused(
    const acquire_wishes& mine,
    bool as_json,
    const boost::system::system_error& error,
    const redlock::diagnostics& why) {
    if (as_json) {
        print(
            {{"resource", mine.lock.resource},
             {"error", error.code().message()},
             {"diagnostics", json_of(why)}});
    }
    return ended_with(mine.lock, error.code(), why);
}

int acquire(const acquire_wishes& mine, const settings& common) {
    redlock::config configuration = config_of(common);
    auto wanted = options_of(mine.lock, redlock::wait_for::forever(), configuration);
    wanted.renew = false;
    session now(std::move(configuration));
    wanted.wait = now.settle_for(wanted.wait);
    std::optional<patience> patient(std::in_place, now, mine.lock.resource, wanted);
    redlock::diagnostics why;
    redlock::lock lock;
    std::signal(SIGPIPE, SIG_IGN); // a closed pipe is reported as an error of the print
    std::signal(SIGXFSZ, SIG_IGN);
    try {
        if (now.signal() == 0) {
            lock = now.wait([&](auto token) {
                return now.manager.async_acquire(
                    mine.lock.resource, wanted, with_diagnostics(why, std::move(token)));
            });
        }
    } catch (const boost::system::system_error& error) {
        const bool told = patient->told_causes();
        patient.reset(); // its line ends
        if (now.signal() == 0) {
            const int status = refused(mine, common.json, error, why);
            hint_at_votes(now.how(), mine.lock.resource, why, !told);
            return status;
        }
    }
    if (now.signal() != 0) {
        return by_signal + now.signal(); // a lock that was granted is released with the session
    }
    if (common.json) {
        json out = found_of(mine, lock);
        out["diagnostics"] = json_of(why);
        print(out);
    } else {
        fmt::print("{}\n", lock.secret());
    }
    // Nobody could release a lock whose token was not read, so it is released at the end of this
    // session.
    require_written();
    lock.abandon();
    return 0;
}

// Whether a change of the members was planned or made in between. An operation that meets it fails
// once, because the masters replied on their earlier records.
bool members_moved(const redlock::health& before, const redlock::health& after) {
    return !std::ranges::equal(
        before.masters, after.masters, [](const auto& one, const auto& other) {
            return one.generation == other.generation && one.planned == other.planned;
        });
}

redlock::lock attach(
    session& now,
    const acquire_wishes& mine,
    redlock::acquire_options wanted,
    redlock::diagnostics& why,
    bool shortens = false) {
    for (;;) {
        now.settle(need::most);
        const redlock::health before = now.manager.get_health();
        if (shortens && before.max_ttl.count() != 0) {
            wanted.ttl = std::min(wanted.ttl, before.max_ttl);
        }
        try {
            return now.wait([&](auto token) {
                return now.manager.async_attach(
                    mine.lock.resource,
                    mine.token,
                    wanted,
                    with_diagnostics(why, std::move(token)));
            });
        } catch (const boost::system::system_error& error) {
            if (error.code() != redlock::errc::no_quorum || now.signal() != 0) {
                throw;
            }
            // A master whose record has changed refuses the command. The manager then reads INFO
            // and the record again, one after the other: a query follows each on its connection.
            if (std::ranges::count(why.votes, redlock::vote::error, &redlock::master_vote::vote)
                > 0) {
                for (int i = 0; i < 2; ++i) {
                    now.wait([&](auto token) {
                        return now.manager.async_query(mine.lock.resource, std::move(token));
                    });
                }
            }
            now.settle(need::most);
            if (!members_moved(before, now.manager.get_health())) {
                throw;
            }
        }
    }
}

constexpr milliseconds brief_ttl{2'000};

int extend(const acquire_wishes& mine, const settings& common) {
    redlock::config configuration = config_of(common);
    auto wanted = options_of(mine.lock, redlock::wait_for::none(), configuration);
    wanted.renew = false;
    session now(std::move(configuration));
    redlock::diagnostics why;
    try {
        redlock::lock lock = attach(now, mine, wanted, why);
        if (common.json) {
            json out = found_of(mine, lock);
            out["diagnostics"] = json_of(why);
            print(out);
        }
        lock.abandon();
        return 0;
    } catch (const boost::system::system_error& error) {
        return now.signal() != 0 ? by_signal + now.signal()
                                 : refused(mine, common.json, error, why);
    }
}

// Whether a majority has replied: then the answers differ, and the masters are not away.
bool differ(const redlock::diagnostics& why) {
    const auto replied = std::ranges::count_if(why.votes, [](const redlock::master_vote& one) {
        return one.vote == redlock::vote::granted || one.vote == redlock::vote::held
               || one.vote == redlock::vote::owned_by_other || one.vote == redlock::vote::absent;
    });
    return !why.votes.empty() && static_cast<std::size_t>(replied) >= why.quorum;
}

int release(const acquire_wishes& mine, const settings& common) {
    redlock::config configuration = config_of(common);
    acquire_wishes brief = mine;
    // Taking it over is an extension, for the time of a release and no longer.
    brief.lock.ttl =
        configuration.max_ttl.count() != 0 ? std::min(configuration.max_ttl, brief_ttl) : brief_ttl;
    auto wanted = options_of(brief.lock, redlock::wait_for::none(), configuration);
    wanted.renew = false;
    session now(std::move(configuration));
    redlock::diagnostics why;
    try {
        redlock::lock lock = attach(now, mine, wanted, why, true);
        const auto result = now.wait([&](auto token) {
            return lock.async_release(with_diagnostics(why, std::move(token)));
        });
        if (common.json) {
            print(
                {{"resource", mine.lock.resource},
                 {"result", redlock::to_string(result)},
                 {"diagnostics", json_of(why)}});
        }
        if (result != redlock::release_result::released) {
            say(fmt::format(
                "'{}': {}: {}", printable(mine.lock.resource), to_string(result), to_string(why)));
        }
        return static_cast<int>(
            result == redlock::release_result::released    ? exit_code::done
            : result == redlock::release_result::uncertain ? exit_code::undecided
                                                           : exit_code::lost);
    } catch (const boost::system::system_error& error) {
        if (now.signal() != 0) {
            return by_signal + now.signal();
        }
        const int status = refused(mine, common.json, error, why);
        return status == static_cast<int>(exit_code::no_quorum) && differ(why)
                   ? static_cast<int>(exit_code::undecided)
                   : status;
    }
}

} // namespace

void require_token(const std::string& token) {
    if (token.empty()) {
        throw failure(
            exit_code::usage,
            "no token: give the one that acquire has printed, in REDLOCK_TOKEN or with --token");
    }
    const char* const variable = std::getenv("REDLOCK_TOKEN");
    const bool written = variable == nullptr || token != variable;
    require(
        redlock::detail::check_secret(token),
        written ? exit_code::usage : exit_code::configuration);
}

void add_token(CLI::App& app, std::string& into) {
    app.add_option("--token", into, "Token printed by acquire; better in REDLOCK_TOKEN")
        ->type_name("TOKEN");
}

void add_acquire_commands(command_line& to) {
    const auto taken = std::make_shared<acquire_wishes>();
    CLI::App& takes = to.add(
        "acquire",
        "Acquire a lock, print its token and keep the lock for its ttl",
        "  REDLOCK_TOKEN=$(redlock acquire --ttl 30s backup) || exit\n"
        "  export REDLOCK_TOKEN    # for extend, release and attach\n"
        "  redlock acquire --wait none --json backup | jq .diagnostics\n\n"
        "Only the token goes to standard output. The lock is not renewed: use extend, or run, "
        "which\n"
        "renews it. Exits with 0, 200 held by another, 201 no quorum.");
    add_wishes(takes, taken->lock, "forever");
    to.when(takes, [taken, &to] { return acquire(*taken, to.common); });

    const auto held = std::make_shared<acquire_wishes>();
    CLI::App& extends = to.add(
        "extend",
        "Extend a lock to a ttl, counted from now; never shortens it",
        "  redlock extend --ttl 30s backup || echo 'lost, stop here'\n\n"
        "Never shortens a lease. Exits with 0, 201 no quorum (the old deadline is unchanged), 202 "
        "if\n"
        "the lock is lost.");
    add_resource(extends, held->lock.resource);
    add_ttl(extends, held->lock.ttl, "Duration of the lease, from now");
    add_token(extends, held->token);
    to.when(extends, [held, &to] {
        require_token(held->token);
        return extend(*held, to.common);
    });

    const auto given = std::make_shared<acquire_wishes>();
    CLI::App& releases = to.add(
        "release",
        "Release a lock",
        "  redlock release backup\n\n"
        "Exits with 0, 202 if the lock was lost before, 201 if too few masters replied, 206 if\n"
        "their answers differ. With 201 and 206 the lock ends with its ttl.");
    add_resource(releases, given->lock.resource);
    add_token(releases, given->token);
    to.when(releases, [given, &to] {
        require_token(given->token);
        return release(*given, to.common);
    });
}

} // namespace cli
