#include "fuzzed_quorum.hpp"

#include "require.hpp"

#include <array>

namespace fuzz {

namespace core = redlock::core;
namespace test = redlock::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

core::settings settings_of(const fuzzed_quorum::rules& chosen) {
    core::settings out = test::settings_for(fuzzed_quorum::masters);
    for (auto& master : out.masters) {
        master.password = chosen.password ? "pw" : "";
        master.client_name = "fuzz";
    }
    out.quarantine = chosen.quarantine;
    out.health_check_interval = seconds(1);
    out.retry_delay_min = milliseconds(20);
    return out;
}

} // namespace

fuzzed_quorum::fuzzed_quorum(rules chosen) : servers_(masters), paths_(masters) {
    make_engine(settings_of(chosen));
    for (std::size_t i = 0; i < masters; ++i) {
        proof_.push_back(std::make_unique<evidence>(engine_->rules().drift));
        servers_[i].run_id = "run-" + std::to_string(i);
        servers_[i].password = "pw";
        servers_[i].started_us = chosen.young ? servers_[i].wall_us(now_) : 0;
    }
}

// --- The network ---------------------------------------------------------------------------------

void fuzzed_quorum::connect(std::size_t master) {
    if (links_[master].asked_for()) {
        link_opened(master);
        end_of_event();
    }
}

void fuzzed_quorum::refuse(std::size_t master) {
    if (links_[master].asked_for()) {
        link_closed(master, "connection refused");
        end_of_event();
    }
}

void fuzzed_quorum::disconnect(std::size_t master) {
    if (links_[master].up) {
        paths_[master] = {};
        link_closed(master, "connection reset by peer");
        end_of_event();
    }
}

void fuzzed_quorum::take_output(std::size_t master) {
    path& way = paths_[master];
    if (links_[master].up && way.writing.empty()) {
        way.writing = std::exchange(engine_->output(master), {});
        way.seen = 0;
    }
}

void fuzzed_quorum::complete_write(std::size_t master) {
    path& way = paths_[master];
    if (links_[master].up && !way.writing.empty()) {
        const std::size_t size = way.writing.size();
        way.inbox += std::exchange(way.writing, {});
        engine_->written(master, size, now_);
        end_of_event();
    }
}

void fuzzed_quorum::answer(std::size_t master) {
    path& way = paths_[master];
    if (const auto words = unit::virtual_master::take_command(way.inbox)) {
        way.outbox += servers_[master].execute(*words, now_);
    }
}

void fuzzed_quorum::answer_with(std::size_t master, std::string_view bytes) {
    path& way = paths_[master];
    if (unit::virtual_master::take_command(way.inbox)) {
        honest_ = false;
        way.outbox += bytes;
    }
}

void fuzzed_quorum::say(std::size_t master, std::string_view bytes) {
    if (links_[master].up) {
        honest_ = false;
        paths_[master].outbox += bytes;
    }
}

void fuzzed_quorum::deliver(std::size_t master, std::size_t bytes) {
    path& way = paths_[master];
    const std::string piece = way.outbox.substr(0, bytes);
    if (links_[master].up && !piece.empty()) {
        way.outbox.erase(0, piece.size());
        arrive(master, piece);
    }
}

void fuzzed_quorum::arrive(std::size_t master, std::string_view bytes) {
    proof_[master]->heard(bytes);
    const std::vector<char> piece(bytes.begin(), bytes.end()); // a sanitizer sees its end
    engine_->received(master, piece, now_);
    end_of_event();
}

void fuzzed_quorum::settle() {
    constexpr int rounds_max = 8; // introduction, command, the same said otherwise, removal
    for (int round = 0; round < rounds_max; ++round) {
        for (std::size_t i = 0; i < masters; ++i) {
            connect(i);
            complete_write(i);
            take_output(i);
            complete_write(i);
            while (!paths_[i].inbox.empty()) {
                const std::size_t before = paths_[i].inbox.size();
                answer(i);
                if (paths_[i].inbox.size() == before) {
                    break; // half a command
                }
            }
            deliver(i, paths_[i].outbox.size());
        }
    }
}

void fuzzed_quorum::change(std::size_t master, std::size_t how) {
    unit::virtual_master& server = servers_[master];
    switch (how % 9) {
    case 0:
        server.info_overrides["loading"] = server.info_overrides["loading"] == "1" ? "0" : "1";
        break;
    case 1:
        server.info_overrides["role"] =
            server.info_overrides["role"] == "slave" ? "master" : "slave";
        break;
    case 2:
        server.forbidden = {"EVAL"};
        break;
    case 3:
        server.forbidden = {"EVALSHA"};
        break;
    case 4:
        server.unknown = {"EVALSHA"};
        break;
    case 5:
        server.forbidden = {"EVAL", "EVALSHA"};
        break;
    case 6:
        server.unknown.clear();
        server.forbidden.clear();
        break;
    case 7:
        server.run_id = servers_[(master + 1) % masters].run_id;
        break;
    default:
        server.forget_scripts();
    }
    // Of one server under two names, each has keys of its own here.
    honest_ = honest_ && how % 9 != 7;
}

void fuzzed_quorum::restart(std::size_t master) {
    unit::virtual_master& server = servers_[master];
    server.forget();
    server.run_id += "'";
    server.started_us = server.wall_us(now_);
    honest_ = false; // it forgets leases, which only the quarantine makes up for
    disconnect(master);
}

// --- Time ----------------------------------------------------------------------------------------

void fuzzed_quorum::tick() {
    engine_->time_passed(now_);
    for (const lease& one : leases_) {
        require(
            one.is != lease::state::held || now_ < one.held_until,
            "a lease is lost at its deadline");
    }
    end_of_event();
}

void fuzzed_quorum::pass(std::chrono::nanoseconds span) {
    constexpr int at_once_max = 1000;
    const time_point until = now_ + span;
    int at_once = 0;
    while (engine_->next_due() <= until) {
        const time_point due = engine_->next_due();
        at_once = due > now_ ? 0 : at_once + 1;
        require(at_once < at_once_max, "time goes on");
        now_ = std::max(now_, due);
        tick();
    }
    now_ = until;
}

void fuzzed_quorum::stall(std::chrono::nanoseconds span) {
    now_ += span;
}

void fuzzed_quorum::wake() {
    tick();
}

// --- Callers -------------------------------------------------------------------------------------

void fuzzed_quorum::start() {
    if (starts_++ == 0 && !engine_->closing()) {
        engine_->start(now_);
        end_of_event();
    }
}

void fuzzed_quorum::acquire(std::size_t resource, const redlock::acquire_options& options) {
    const std::uint64_t cookie = next_cookie_++;
    waiting_[cookie] = {};
    const std::string name = "r" + std::to_string(resource);
    const auto operation = engine_->acquire({cookie, name, options}, now_);
    if (const auto still = waiting_.find(cookie); still != waiting_.end()) {
        still->second = operation;
    }
    asked_.push_back(operation);
    end_of_event();
}

void fuzzed_quorum::cancel(std::size_t which) {
    if (!asked_.empty()) {
        engine_->cancel(asked_[which % asked_.size()], now_);
        end_of_event();
    }
}

void fuzzed_quorum::extend(std::size_t which, milliseconds ttl) {
    if (!leases_.empty()) {
        lease& one = leases_[which % leases_.size()];
        one.extensions += one.is == lease::state::held ? 1U : 0U;
        engine_->extend(one.name, ttl, now_);
        end_of_event();
    }
}

void fuzzed_quorum::release(std::size_t which) {
    if (!leases_.empty()) {
        lease& one = leases_[which % leases_.size()];
        const bool may_act = one.is == lease::state::held || one.is == lease::state::lost;
        one.is = may_act ? lease::state::ending : one.is;
        engine_->release(one.name, now_);
        require(one.extensions == 0, "a release ends the extensions");
        end_of_event();
    }
}

void fuzzed_quorum::abandon(std::size_t which) {
    if (!leases_.empty()) {
        lease& one = leases_[which % leases_.size()];
        if (engine_->abandon(one.name)) {
            one.is = lease::state::over;
            abandoned_.insert(one.token);
        }
        end_of_event();
    }
}

void fuzzed_quorum::ask(std::size_t resource) {
    if (engine_->running()) {
        ++queries_;
        engine_->ask(next_cookie_++, "r" + std::to_string(resource), now_);
        end_of_event();
    }
}

void fuzzed_quorum::look() {
    const redlock::health seen = engine_->examine(now_);
    require(seen.masters.size() == masters, "health knows every master");
    std::size_t admitted = 0;
    for (const redlock::master_health& one : seen.masters) {
        admitted += one.state == redlock::master_state::admitted ? 1U : 0U;
        require(
            (one.state == redlock::master_state::admitted) == one.text.empty(),
            "health says why a master does not vote");
        require(one.text.find("pw") == std::string::npos, "no password in the health");
    }
    require(admitted == seen.admitted, "health counts the admitted masters");
    require(
        seen.ready == (engine_->running() && admitted >= seen.quorum),
        "ready with a majority only");
}

void fuzzed_quorum::close() {
    if (!engine_->closing()) {
        engine_->close(now_);
        end_of_event();
    }
}

void fuzzed_quorum::finish() {
    close();
    require(engine_->closing(), "what is closed is closing");
    pass(engine_->rules().master_timeout);
    require(engine_->closed_down() && closings_ == 1, "closing ends, once");
    require(engine_->next_due() == core::forever, "nothing is due after the end");
    require(waiting_.empty(), "every acquire was answered");
    require(queries_ == 0, "every query was answered");
    for (const lease& one : leases_) {
        require(one.is == lease::state::over, "every lease came to its end");
        require(one.extensions == 0, "every extension was answered");
    }
    const redlock::metrics counters = engine_->count();
    require(
        counters.waiting == 0 && counters.held == 0 && counters.pending_removals == 0,
        "nothing is left");
    for (const link& one : links_) {
        require(one.id == test::no_connection, "no connection is left");
    }
}

// --- What the engine wants -----------------------------------------------------------------------

void fuzzed_quorum::open(std::size_t master) {
    require(links_[master].id == test::no_connection, "one connection for each master");
    links_[master].id = 0;
    proof_[master]->restart();
}

void fuzzed_quorum::close(std::size_t master) {
    links_[master] = {};
    paths_[master] = {};
    proof_[master]->restart();
}

fuzzed_quorum::lease& fuzzed_quorum::lease_of(const core::claim& claim) {
    const auto found = std::find_if(
        leases_.begin(), leases_.end(), [&](const lease& one) { return one.name == claim.self; });
    require(found != leases_.end(), "what is said of a lease is said of one that was given");
    return *found;
}

// The deadline is at most what a majority of the masters has promised in its own words.
void fuzzed_quorum::require_proof(const core::claim& claim) {
    listen();
    const std::string token(claim.token_text());
    std::array<time_point, masters> until;
    for (std::size_t i = 0; i < masters; ++i) {
        until[i] = proof_[i]->until(token);
    }
    std::sort(until.rbegin(), until.rend());
    require(
        claim.deadline() <= until[engine_->rules().quorum() - 1],
        "a majority of the masters supports a deadline");
}

void fuzzed_quorum::acquired(const core::acquire_call& done, const core::claim& claim) {
    require(waiting_.erase(done.cookie) == 1, "an acquire is answered once");
    require(now_ < claim.held_until(), "a lease that is given is not over");
    require_proof(claim);
    for (const lease& one : leases_) {
        require(!(one.name == claim.self), "each lease has a name of its own");
        require(
            !honest_ || one.key != std::string_view(claim.key()) || !one.acts(now_),
            "one holder at a time");
    }
    leases_.push_back(
        {.is = lease::state::held,
         .name = claim.self,
         .key = std::string(claim.key()),
         .token = std::string(claim.token_text()),
         .held_until = claim.held_until(),
         .deadline = claim.deadline(),
         .late = false,
         .extensions = 0});
}

void fuzzed_quorum::not_acquired(const core::acquire_call& done) {
    require(waiting_.erase(done.cookie) == 1, "an acquire is answered once");
}

void fuzzed_quorum::lease_changed(const core::claim& claim) {
    lease& mine = lease_of(claim);
    require(mine.is == lease::state::held, "only a held lease changes");
    require(now_ < mine.held_until, "a lease whose time is over does not come back");
    require_proof(claim);
    mine.held_until = claim.held_until();
    mine.deadline = std::max(mine.deadline, claim.deadline());
}

void fuzzed_quorum::lease_lost(const core::claim& claim, redlock::loss_reason reason) {
    lease& mine = lease_of(claim);
    require(mine.is == lease::state::held, "a lease is lost once");
    require(reason != redlock::loss_reason::none, "a loss has a reason");
    mine.is = lease::state::lost;
    mine.late = true;
}

void fuzzed_quorum::extended(const core::claim& claim, std::optional<redlock::errc> error) {
    lease& mine = lease_of(claim);
    require(mine.extensions > 0, "an extension is answered once");
    --mine.extensions;
    require(
        error.has_value() || (mine.is == lease::state::held && now_ < mine.held_until),
        "what is extended is held");
}

void fuzzed_quorum::removed(const core::claim& claim, redlock::release_result result) {
    lease& mine = lease_of(claim);
    // What is not let go while the engine closes is left to its ttl.
    const bool must_have_stopped = !mine.acts(now_) || engine_->closed_down();
    require(
        mine.is == lease::state::ending || (mine.is == lease::state::lost && must_have_stopped),
        "a lease is removed once, after its end");
    require(
        !mine.late || result != redlock::release_result::released, "what was lost is not released");
    mine.is = lease::state::over;
}

void fuzzed_quorum::queried(std::uint64_t, redlock::lock_status&& found) {
    require(queries_ > 0, "a query is answered once");
    --queries_;
    require(found.masters.size() == masters, "a query knows every master");
}

void fuzzed_quorum::closed() {
    ++closings_;
}

// --- Watching ------------------------------------------------------------------------------------

// Reads what the engine has queued since the last look.
void fuzzed_quorum::listen() {
    for (std::size_t i = 0; i < masters; ++i) {
        const std::string& output = engine_->output(i);
        std::string fresh = output.substr(std::min(paths_[i].seen, output.size()));
        new_output_ = new_output_ || !fresh.empty();
        paths_[i].seen = output.size();
        while (const auto words = unit::virtual_master::take_command(fresh)) {
            proof_[i]->said(*words, now_);
        }
        require(fresh.empty(), "commands are queued whole");
    }
}

void fuzzed_quorum::end_of_event() {
    listen();
    const bool told = engine_->wants_write();
    require(told || !new_output_, "the writer is notified that something waits to be written");
    new_output_ = false;

    std::size_t held = 0;
    for (const lease& one : leases_) {
        held += one.is == lease::state::held ? 1U : 0U;
        require(
            one.is != lease::state::held || engine_->next_due() <= one.held_until,
            "somebody is woken at the end of a lease");
        require(
            !one.acts(now_) || engine_->closed_down() || engine_->next_due() <= one.deadline,
            "somebody is woken when a holder must have stopped");
    }
    const redlock::metrics counters = engine_->count();
    require(counters.held == held, "the held leases are those that were given and not ended");
    require(counters.waiting == waiting_.size(), "the waiters are the callers without a result");
    require_rollbacks();
    require_keys();
}

// A key that was asked for on this connection belongs to a lease or to an attempt in flight, or its
// removal was sent after it.
void fuzzed_quorum::require_rollbacks() {
    std::set<std::string> wanted = abandoned_;
    for (const lease& one : leases_) {
        if (one.is == lease::state::held || one.is == lease::state::lost) {
            wanted.insert(one.token);
        }
    }
    for (const auto& proof : proof_) {
        std::size_t unaccounted = 0;
        for (const std::string& token : proof->set_and_not_removed()) {
            unaccounted += wanted.contains(token) ? 0U : 1U;
        }
        require(unaccounted <= waiting_.size(), "what was not won is removed on its connection");
    }
}

// No master is sent a removal of the key of a holder that may still act.
void fuzzed_quorum::require_keys() {
    for (const lease& one : leases_) {
        for (std::size_t i = 0; one.acts(now_) && i < masters; ++i) {
            require(!proof_[i]->was_removed(one.token), "the key of a holder is left alone");
        }
    }
}

} // namespace fuzz
