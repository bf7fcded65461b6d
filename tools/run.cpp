#include "run.hpp"

#include "config/sizing.hpp"
#include "ending.hpp"
#include "exit_code.hpp"
#include "hints.hpp"
#include "job.hpp"
#include "patience.hpp"
#include "session.hpp"
#include "supervisor.hpp"
#include "terminating_signals.hpp"
#include "terms.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

namespace cli {
namespace {

// Wall clock in milliseconds: the only clock that another program can read.
std::int64_t wall_time_of(redlock::time_point at) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto then = now + (at - redlock::clock::now());
    return std::chrono::duration_cast<milliseconds>(then).count();
}

// How long a command tries again that would skip its turn, if no other client holds the lock.
constexpr std::chrono::seconds split_max{3};

class run {
public:
    run(run_options options, redlock::config configuration, std::vector<std::string> command)
        : options_(std::move(options)),
          program_(command.front()),
          terms_(options_, configuration),
          supervisor_(std::make_unique<supervisor>(terms_.rules(std::move(command)))),
          session_(std::in_place, std::move(configuration)),
          signals_(session_->io),
          refresh_(session_->io),
          reports_(session_->io, duplicate(supervisor_->descriptor())) {}

    ~run() {
        // The command must have ended before the lease does.
        supervisor_.reset();
        reports_.close();
    }
    run(const run&) = delete;
    run& operator=(const run&) = delete;

    /// Returns the exit status.
    int end() {
        if (const int refused = acquire(); refused >= 0) {
            return refused;
        }
        watch();
        while (!gone_) {
            session_->io.run_one();
        }
        supervisor_.reset();
        return finish();
    }

    /// Whether the lock was lost while the command ran, and no signal has asked us to end.
    bool lost_by_itself() {
        session_->look_for_signal();
        return lost_.has_value() && session_->signal() == 0;
    }

private:
    static int duplicate(int descriptor) {
        const int out = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
        return out >= 0 ? out : throw std::system_error(errno, std::generic_category(), "fcntl");
    }

    /// -1, or the exit status.
    int acquire() {
        redlock::acquire_options& wanted = terms_.wanted;
        wanted.wait =
            session_->settle_for(options_.token.empty() ? wanted.wait : redlock::wait_for::none());
        terms_.fit(session_->manager.get_health().max_ttl);
        std::optional<patience> patient(
            std::in_place, *session_, options_.lock.resource, wanted, options_.slots > 0);
        redlock::diagnostics why;
        try {
            if (session_->signal() == 0) {
                take_or_skip(why);
            }
        } catch (const boost::system::system_error& error) {
            const bool told = patient->told_causes();
            patient.reset(); // its line ends
            if (session_->signal() == 0) {
                if (skips_) {
                    say(fmt::format("'{}' is held, skipped", printable(options_.lock.resource)));
                    return 0;
                }
                const int out = ended_with(options_.lock, error.code(), why);
                if (options_.token.empty()) {
                    hint_at_votes(session_->how(), options_.lock.resource, why, !told);
                }
                return out;
            }
        }
        session_->look_for_signal(); // one that came with the last reply
        if (session_->signal() != 0) {
            return by_signal + session_->signal();
        }
        begun_ = redlock::clock::now();
        return -1;
    }

    // Throws what the library throws. If several clients try at once, each may get some of the
    // votes and none a majority. If all of them skipped their turn, nobody would do the job.
    void take_or_skip(redlock::diagnostics& why) {
        const auto end = redlock::clock::now() + split_max;
        for (milliseconds pause{50};; pause = std::min(2 * pause, milliseconds(1'000))) {
            try {
                take(why);
                return;
            } catch (const boost::system::system_error& error) {
                if (!options_.lock.skip_if_held || !held_by_another(error.code(), why)) {
                    throw;
                }
                skips_ = options_.slots > 0 || is_held(*session_, options_.lock.resource, why);
                const milliseconds some(std::random_device{}() % pause.count());
                if (skips_ || terms_.wanted.wait != redlock::wait_for::none()
                    || redlock::clock::now() >= end || session_->pause(some)) {
                    throw;
                }
            }
        }
    }

    // Throws what the library throws.
    void take(redlock::diagnostics& why) {
        redlock::lock_manager& manager = session_->manager;
        const std::string& name = options_.lock.resource;
        lock_ = session_->wait([&](auto plain) {
            const auto token = redlock::with_diagnostics(why, std::move(plain));
            return !options_.token.empty()
                       ? manager.async_attach(name, options_.token, terms_.wanted, token)
                   : options_.slots > 0 ? manager.async_acquire(
                         redlock::slots(name, options_.slots), terms_.wanted, token)
                                        : manager.async_acquire(name, terms_.wanted, token);
        });
    }

    void watch() {
        supervisor_->start(lock_.deadline(), terms_.grace(), variables());
        listen_to_signals();
        listen_to_supervisor();
        refresh();
        lock_.async_wait_lost(redlock::with_diagnostics(
            why_lost_, [this](const redlock::error_code& error, redlock::loss_reason reason) {
                if (!error) {
                    lost(reason);
                }
            }));
    }

    std::vector<std::string> variables() {
        std::vector<std::string> out{
            "REDLOCK_RESOURCE=" + options_.lock.resource,
            fmt::format("REDLOCK_DEADLINE={}", wall_time_of(lock_.deadline())),
        };
        if (!options_.shared) { // that of a reader is of no use: no command extends or releases it
            out.push_back("REDLOCK_TOKEN=" + std::string(lock_.secret()));
        }
        if (options_.lock.fencing) {
            out.push_back(fmt::format("REDLOCK_FENCING_TOKEN={}", lock_.fencing_token()));
        }
        if (options_.slots > 0) {
            out.push_back(fmt::format("REDLOCK_SLOT={}", lock_.slot()));
        }
        return out;
    }

    void listen_to_signals() {
        // The session has received these since before the acquire. A second set would miss a signal
        // between the two.
        session_->forward_signals([this](int number) { forward(number); });
        for (const int number : {SIGUSR1, SIGUSR2}) {
            signals_.add(number);
        }
        // The command is asked to stop first. If it does, so does the tool.
        struct sigaction stop {};
        if (::sigaction(SIGTSTP, nullptr, &stop) == 0 && stop.sa_handler != SIG_IGN) {
            signals_.add(SIGTSTP);
        }
        forward_next();
        job_.emplace(session_->io, [this] {
            if (supervisor_) {
                supervisor_->share_terminal();
            }
        });
    }

    void forward_next() {
        signals_.async_wait([this](const redlock::error_code& error, int number) {
            if (!error) {
                forward(number);
                forward_next();
            }
        });
    }

    void forward(int number) {
        if (supervisor_) {
            supervisor_->forward(number);
        }
    }

    void listen_to_supervisor() {
        reports_.async_wait(
            asio::posix::stream_descriptor::wait_read, [this](const redlock::error_code& error) {
                if (!error) {
                    told(supervisor_->read());
                    if (!gone_) {
                        listen_to_supervisor();
                    }
                }
            });
    }

    void told(supervisor_report report) {
        switch (report.what) {
        case supervisor_report::kind::started:
            break;
        case supervisor_report::kind::failed:
            exec_error_ = report.value;
            break;
        case supervisor_report::kind::due:
            due_ = true;
            break;
        case supervisor_report::kind::interrupted:
            from_terminal_ = report.value;
            break;
        case supervisor_report::kind::ended:
            command_status_ = report.value;
            break;
        case supervisor_report::kind::stopped:
        case supervisor_report::kind::followed:
            if (report.value != SIGTSTP) {
                say_halted(report.value);
            }
            // Like every job: the shell must see it stopped. The lock is not renewed during that
            // time, and the supervisor stops the command if it takes too long.
            if (job::stop(report.what == supervisor_report::kind::stopped)
                || report.value == SIGTSTP) {
                supervisor_->set_deadline(lock_.deadline());
                supervisor_->resume();
            }
            break;
        case supervisor_report::kind::halted:
            say_halted(report.value);
            seeks_terminal_ = report.value == SIGTTIN || report.value == SIGTTOU;
            break;
        case supervisor_report::kind::gone:
            gone_ = true;
            break;
        case supervisor_report::kind::died:
            gone_ = supervisor_died_ = true;
            due_ = due_ || supervisor_hung_;
            break;
        }
        if (gone_ && report.value > 0) {
            lock_.abandon(); // they may still act
            say(fmt::format(
                "{} process{} of the command did not end after KILL",
                report.value,
                report.value == 1 ? "" : "es"));
        }
    }

    static void say_halted(int number) {
        say(number == SIGTTIN || number == SIGTTOU
                ? "the command needs the terminal, which another job has; it continues after fg"
                : fmt::format("the command was stopped by signal {}; CONT continues it", number));
    }

    // The supervisor needs every new deadline, earlier ones as well if masters have lost the key.
    // It may be stopped or hang: then the command is stopped from here.
    void refresh() {
        const auto now = redlock::clock::now();
        const auto overdue_in =
            std::max<redlock::clock::duration>(supervisor_->overdue_at() - now, {});
        const auto period = std::clamp(terms_.ttl() / 20, milliseconds(5), milliseconds(250));
        refresh_.expires_after(std::min<redlock::clock::duration>(overdue_in, period));
        refresh_.async_wait([this](const redlock::error_code& error) {
            if (error || gone_) {
                return;
            }
            const auto until = lock_.deadline();
            if (!lost_ && lock_.held() && until != told_deadline_) {
                told_deadline_ = until;
                supervisor_->set_deadline(until);
            }
            if (seeks_terminal_) { // no event shows that the shell has given it to the job
                supervisor_->seek_terminal();
            }
            if (redlock::clock::now() < supervisor_->overdue_at()) {
                refresh();
                return;
            }
            supervisor_->kill();
            supervisor_hung_ = true; // unless its last report is in flight
        });
    }

    void lost(redlock::loss_reason reason) {
        if (!supervisor_ || gone_) {
            if (reason == redlock::loss_reason::max_hold_reached) {
                limit_reached_ = true; // the keys stay until the release
                return;
            }
            say(fmt::format(
                "lost '{}' ({}) after the command had ended",
                printable(options_.lock.resource),
                to_string(reason)));
            lost_late_ = true;
            return;
        }
        lost_ = reason;
        const auto now = redlock::clock::now();
        // If another owner may hold it already, there is no grace.
        const bool at_once = reason == redlock::loss_reason::owned_by_other
                             || (reason == redlock::loss_reason::expired && unguarded());
        supervisor_->stop(at_once ? now : now + terms_.grace());
        refresh();
        redlock::diagnostics why = why_lost_;
        why.message = fmt::format(
            "lost '{}' ({}), stopping the command",
            printable(options_.lock.resource),
            to_string(reason));
        say(to_string(why));
    }

    /// Whether the masters may have granted the lost lock to another owner: a majority has no key
    /// of it and is not in quarantine. The plain protocol has no quarantine for a master that was
    /// emptied.
    bool unguarded() const {
        const auto& votes = why_lost_.votes;
        const auto without =
            std::count_if(votes.begin(), votes.end(), [](const redlock::master_vote& one) {
                return one.vote == redlock::vote::absent
                       || one.vote == redlock::vote::owned_by_other;
            });
        return session_->how().protocol == redlock::protocol::plain
               || static_cast<std::size_t>(without) >= redlock::detail::votes_needed(votes.size());
    }

    int finish() {
        refresh_.cancel();
        stay();
        if (options_.keep && !lost_ && lock_.held()) {
            lock_.abandon();
        }
        if (lock_.valid()) {
            redlock::diagnostics why;
            const auto result = release(why);
            if (!lost_ && result == redlock::release_result::uncertain && !why.votes.empty()) {
                say(fmt::format(
                    "'{}' was not released, and expires with its ttl: {}",
                    printable(options_.lock.resource),
                    to_string(why)));
            }
            if (!lost_ && !lost_late_ && !limit_reached_
                && result != redlock::release_result::released
                && result != redlock::release_result::uncertain) {
                say(fmt::format(
                    "'{}' {}",
                    printable(options_.lock.resource),
                    result == redlock::release_result::stolen
                        ? "had another owner before it was released"
                        : "had expired before it was released; another owner may have held it"));
                lost_late_ = true;
            }
        }
        if (exec_error_ != 0) {
            return not_started(program_, exec_error_, true);
        }
        if (supervisor_died_ && supervisor_hung_) {
            say("the command had not ended in time: it was killed together with its supervisor");
        } else if (supervisor_died_) {
            say("the supervisor was killed, and the command with it");
            return static_cast<int>(exit_code::internal);
        }
        if (due_ && !lost_) {
            // The timer of the supervisor was faster than ours.
            lost_ = redlock::loss_reason::majority_unreachable;
            say(fmt::format(
                "the lease of '{}' was not renewed in time", printable(options_.lock.resource)));
        }
        if (lost_ || lost_late_) {
            return static_cast<int>(exit_code::lost);
        }
        if (signaled_late_) {
            return by_signal + session_->signal();
        }
        const int group = session_->signal() == 0 ? from_terminal_ * of_group : 0;
        if (WIFEXITED(command_status_)) {
            return WEXITSTATUS(command_status_) + group;
        }
        const int number = WTERMSIG(command_status_);
        if (std::ranges::count(terminating_signals, number) == 0) {
            return 128 + number + group;
        }
        return by_signal + number + group;
    }

    // A signal ends the wait for the masters' replies, not the release.
    redlock::release_result release(redlock::diagnostics& why) {
        try {
            return session_->wait([&](auto token) {
                return lock_.async_release(redlock::with_diagnostics(why, std::move(token)));
            });
        } catch (const boost::system::system_error&) {
            if (session_->signal() == 0) {
                throw;
            }
            return redlock::release_result::uncertain;
        }
    }

    // --at-least: the command has ended, but the lock is kept.
    void stay() {
        signals_.cancel();
        signals_.remove(SIGTSTP);
        job_.reset();
        if (exec_error_ != 0 || lost_ || due_ || session_->signal() != 0) {
            return;
        }
        const auto until = begun_
                           + std::min<redlock::clock::duration>(
                               options_.at_least, redlock::time_point::max() - begun_);
        if (redlock::clock::now() >= until) {
            return;
        }
        // The reader of the output has received everything.
        if (const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC); nothing >= 0) {
            ::dup2(nothing, STDIN_FILENO);
            ::dup2(nothing, STDOUT_FILENO);
            ::close(nothing);
        }
        while (!lost_late_ && redlock::clock::now() < until) {
            const auto left = std::chrono::ceil<milliseconds>(until - redlock::clock::now());
            if (session_->pause(std::min(left, milliseconds(100)))) {
                lock_.abandon(); // the rest of the lease is kept
                signaled_late_ = true;
                return;
            }
        }
    }

public:
    static int not_started(const std::string& program, int error, bool found) {
        const bool by_name = program.find('/') == std::string::npos;
        const bool line = error == ENOENT && !found && program.find(' ') != std::string::npos;
        say(fmt::format(
            "the command '{}' cannot be run: {}{}",
            printable(program),
            error == ENOENT && program.empty() ? "the name is empty"
            : error == ENOENT && found         ? "the interpreter in its first line does not exist"
            : by_name && program.starts_with("-") ? "not found in PATH; options go before --"
            : error == ENOENT && by_name          ? "not found in PATH"
                                                  : std::strerror(error),
            line ? "; to run a line of the shell, write: sh -c 'LINE'" : ""));
        return static_cast<int>(error == ENOENT ? exit_code::not_found : exit_code::not_executable);
    }

private:
    run_options options_;
    std::string program_;
    terms terms_;
    std::unique_ptr<supervisor> supervisor_;
    std::optional<session> session_;
    asio::signal_set signals_;
    std::optional<job> job_;
    asio::steady_timer refresh_;
    asio::posix::stream_descriptor reports_;
    redlock::lock lock_;
    redlock::diagnostics why_lost_;
    redlock::time_point begun_;
    redlock::time_point told_deadline_;
    std::optional<redlock::loss_reason> lost_;
    int command_status_ = 0;
    int exec_error_ = 0;
    bool skips_ = false; // another client holds the lock, and the command is not run
    bool gone_ = false;
    bool seeks_terminal_ = false;
    int from_terminal_ = 0;      // a signal that the command had from there
    bool lost_late_ = false;     // after the command had ended
    bool limit_reached_ = false; // --max-hold, after the command had ended
    bool signaled_late_ = false; // in the time of --at-least
    bool due_ = false;
    bool supervisor_died_ = false;
    bool supervisor_hung_ = false; // it was killed by us
};

} // namespace

run_end run_under_lock(
    run_options options, redlock::config configuration, std::vector<std::string> command) {
    // Before the acquire: an error in the name of the command must not wait for a lock.
    if (const int error = look_for(command.front()); error != 0) {
        return {run::not_started(command.front(), error, false), false};
    }
    run_end out;
    std::optional<pending_signals> closing;
    {
        run one(std::move(options), std::move(configuration), std::move(command));
        out.status = one.end();
        closing.emplace(); // the session does not listen any more while it closes
        out.lost = one.lost_by_itself();
    }
    out.lost = !closing->take() && out.lost;
    return out;
}

} // namespace cli
