// Every function locks once; nothing is called with the lock held but a test's own
// predicates, which must not come back here.
#include "fake_state.hpp"

#include <atomic>
#include <sstream>

namespace redlock::test {

using namespace std::string_literals;

fake_state::command_predicate named(const std::string& words) {
    std::vector<std::string> wanted;
    std::istringstream stream(upper(words));
    for (std::string word; stream >> word;) {
        wanted.push_back(word);
    }
    const bool any = words == "*";
    return [any, wanted = std::move(wanted)](const received_command& command) {
        // A connection asks with a script without keys whether scripts are allowed.
        const bool tries = command.name() == "EVAL" && command.args.size() == 3;
        bool same = any || (wanted.size() <= command.args.size() && !tries);
        for (std::size_t i = 0; !any && same && i < wanted.size(); ++i) {
            same = upper(command.args[i]) == wanted[i];
        }
        return same;
    };
}

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return text;
}

fake_state::fake_state(const fake_options& options) {
    constexpr std::int64_t up_for_us = 100'000'000'000; // longer than any quarantine
    master_.restart(new_run_id(), wall_us() - up_for_us, {});
    master_.password = options.requirepass;
    master_.info_overrides = options.info;
}

std::int64_t fake_state::wall_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::string fake_state::new_run_id() {
    static std::atomic<unsigned> made{0};
    const std::string number = std::to_string(++made);
    return std::string(40 - number.size(), 'f') + number;
}

memory::answer fake_state::execute(const std::vector<std::string>& args) {
    const std::vector<std::string_view> words(args.begin(), args.end());
    return master_.execute(words, wall_us());
}

std::string fake_state::command(const std::vector<std::string>& args) {
    const std::lock_guard guard(mutex_);
    return execute(args).describe();
}

std::string fake_state::reply_to(session& who, const std::vector<std::string>& args) {
    const bool introduces = upper(args.front()) == "AUTH";
    memory::answer said = introduces || who.authenticated || master_.password.empty()
                              ? execute(args)
                              : memory::answer::error("NOAUTH Authentication required.");
    who.authenticated = who.authenticated || (introduces && !said.is_error());
    std::string bytes;
    said.encode(bytes);
    return bytes;
}

std::size_t fake_state::note_connected() {
    const std::lock_guard guard(mutex_);
    ++record_.connections_open;
    changed_.notify_all();
    return record_.connections_accepted++;
}

void fake_state::note_closed() {
    const std::lock_guard guard(mutex_);
    --record_.connections_open;
    changed_.notify_all();
}

void fake_state::note_protocol_error(const std::string& text) {
    const std::lock_guard guard(mutex_);
    record_.protocol_errors.push_back(text);
    changed_.notify_all();
}

std::vector<fake_state::pending> fake_state::note_read(
    session& who,
    std::size_t connection,
    std::vector<std::vector<std::string>> requests,
    bool stopped) {
    const std::lock_guard guard(mutex_);
    record_.commands_per_read.push_back(requests.size());
    std::vector<pending> queue;
    for (std::vector<std::string>& args : requests) {
        received_command command{next_sequence_++, connection, std::move(args)};
        record_.commands.push_back(command);
        std::optional<turn> decided;
        if (!stopped) {
            decided = decide(who, command);
            stopped = decided->stops_others();
        }
        queue.push_back({std::move(command), std::move(decided)});
    }
    changed_.notify_all();
    return queue;
}

void fake_state::release(session& who, std::deque<pending>& queue) {
    const std::lock_guard guard(mutex_);
    for (pending& one : queue) {
        if (!one.decided) {
            one.decided = decide(who, one.command);
        } else if (one.decided->held) {
            one.decided->held = false;
            if (one.decided->action.what() == fake_action::kind::hang) {
                one.decided->action = fake_action::obey();
                one.decided->reply = reply_to(who, one.command.args);
            }
        }
        if (one.decided->stops_others()) {
            break;
        }
    }
}

bool fake_state::turn::stops_others() const {
    using kind = fake_action::kind;
    const kind what = action.what();
    return what == kind::hang || what == kind::close_before_reply
           || what == kind::execute_then_close || what == kind::close_mid_reply;
}

fake_action fake_state::choose(const received_command& command) {
    for (rule& candidate : rules_) {
        if (candidate.times_left > 0 && candidate.matches(command)) {
            candidate.times_left -= candidate.times_left == for_ever ? 0 : 1;
            return candidate.action;
        }
    }
    return silent_ ? fake_action::hang() : fake_action::obey();
}

fake_state::turn fake_state::decide(session& who, const received_command& command) {
    using kind = fake_action::kind;
    turn result{choose(command), {}, false};
    const kind what = result.action.what();
    result.held = what == kind::hang || what == kind::execute_then_hang;
    switch (what) {
    case kind::reply:
        result.reply = result.action.text();
        break;
    case kind::garbage:
        result.reply = "\0\xff?neither RESP nor text\x01\r\n\r\n"s;
        break;
    case kind::hang:
    case kind::close_before_reply:
    case kind::too_large:
        break;
    case kind::obey:
    case kind::execute_then_hang:
    case kind::execute_then_close:
    case kind::close_mid_reply:
    case kind::split_bytes:
        result.reply = reply_to(who, command.args);
        break;
    }
    return result;
}

void fake_state::add_rule(command_predicate matches, fake_action action, std::size_t times) {
    const std::lock_guard guard(mutex_);
    rules_.push_back({std::move(matches), std::move(action), times});
}

void fake_state::clear_rules() {
    const std::lock_guard guard(mutex_);
    rules_.clear();
}

void fake_state::set_silent(bool silent) {
    const std::lock_guard guard(mutex_);
    silent_ = silent;
}

void fake_state::clear_log() {
    const std::lock_guard guard(mutex_);
    record_.commands.clear();
    record_.commands_per_read.clear();
    record_.protocol_errors.clear();
}

fake_state::record fake_state::look() const {
    const std::lock_guard guard(mutex_);
    return record_;
}

bool fake_state::wait_for(
    const std::function<bool(const record&)>& holds, std::chrono::seconds limit) {
    std::unique_lock guard(mutex_);
    return changed_.wait_for(guard, limit, [this, &holds] { return holds(record_); });
}

} // namespace redlock::test
