#include "virtual_quorum.hpp"

#include "core/bytes/keys.hpp"

namespace unit {

namespace core = redlock::core;

core::settings guarded(core::settings rules) {
    rules.protocol = redlock::protocol::guarded;
    rules.record_key = "p::epoch";
    return rules;
}

virtual_quorum::virtual_quorum(core::settings rules)
    : masters(rules.size()),
      paths(2 * rules.size()),
      engine(make_engine(std::move(rules))) {
    for (std::size_t i = 0; i < masters.size(); ++i) {
        masters[i].run_id = "run-" + std::to_string(i);
    }
}

void virtual_quorum::start() {
    begin();
    run_for(milliseconds(10));
}

void virtual_quorum::run_until(time_point until) {
    while (step(until)) {
    }
}

bool virtual_quorum::run_while_not(const std::function<bool()>& done, nanoseconds limit) {
    const time_point until = now_ + limit;
    while (!done()) {
        if (!step(until)) {
            return done();
        }
    }
    return true;
}

bool virtual_quorum::step(time_point until) {
    flush();
    const time_point due = engine.next_due();
    const time_point event = queue_.empty() ? core::forever : queue_.begin()->first;
    const time_point next = std::min(due, event);
    if (next > until) {
        now_ = std::max(now_, until);
        return false;
    }
    steps_at_once_ = next > now_ ? 0 : steps_at_once_ + 1;
    if (steps_at_once_ > 100'000) {
        throw std::runtime_error("time stands still");
    }
    now_ = std::max(now_, next);
    if (event <= now_) {
        const auto f = std::move(queue_.begin()->second);
        queue_.erase(queue_.begin());
        f();
    } else {
        engine.time_passed(now_);
    }
    flush();
    return true;
}

void virtual_quorum::flush() {
    const bool asked_to = engine.wants_write();
    for (std::size_t i = 0; i < paths.size(); ++i) {
        path& way = paths[i];
        if (engine.output(i).empty()) {
            way.left_over = false;
            continue;
        }
        if (!asked_to && !way.left_over) {
            throw std::runtime_error("bytes wait to be written, without a request");
        }
        way.left_over = !links_[i].up || !way.takes_bytes;
        if (way.left_over) {
            continue;
        }
        write(i, [&](std::string bytes) {
            on_path(i, now_ + way.there, [this, i, bytes = std::move(bytes)] {
                paths[i].inbox += bytes;
                read(i);
            });
        });
    }
}

void virtual_quorum::on_path(std::size_t link, time_point when, std::function<void()> f) {
    at(when, [this, link, id = links_[link].id, f = std::move(f)] {
        if (links_[link].up && links_[link].id == id) {
            f();
        }
    });
}

void virtual_quorum::read(std::size_t link) {
    path& way = paths[link];
    virtual_master& server = masters[link % masters.size()];
    while (links_[link].up && !way.hung) {
        std::string rest = way.inbox;
        const std::optional<arguments> words = virtual_master::take_command(rest);
        if (!words) {
            return;
        }
        const mishap trouble = server.when ? server.when(*words) : mishap::none;
        if (trouble == mishap::hang_before) {
            way.hung = true;
            return;
        }
        if (trouble == mishap::break_before) {
            disconnect(link);
            return;
        }
        way.inbox = rest;
        const std::string reply = server.execute(*words, now_);
        if (trouble == mishap::break_after) {
            disconnect(link);
            return;
        }
        send_reply(link, reply);
    }
}

void virtual_quorum::send_reply(std::size_t link, const std::string& bytes) {
    path& way = paths[link];
    way.last_reply = std::max(way.last_reply, now_ + way.back);
    on_path(link, way.last_reply, [this, link, bytes] { engine.received(link, bytes, now_); });
}

void virtual_quorum::disconnect(std::size_t link, nanoseconds then) {
    if (links_[link].up) {
        close(link);
        link_closed(link, "connection reset by peer");
    }
    pass(then);
}

void virtual_quorum::resume(std::size_t link, nanoseconds then) {
    paths[link].hung = false;
    read(link);
    pass(then);
}

void virtual_quorum::push(std::size_t master, std::string_view channel, std::string_view message) {
    std::string bytes = "*3\r\n";
    for (const std::string_view part : {std::string_view("message"), channel, message}) {
        bytes.append("$").append(std::to_string(part.size())).append("\r\n");
        bytes.append(part).append("\r\n");
    }
    send_reply(masters.size() + master, bytes);
}

void virtual_quorum::push_everywhere(std::string_view channel, std::string_view message) {
    for (std::size_t i = 0; i < masters.size(); ++i) {
        push(i, channel, message);
    }
}

void virtual_quorum::hold_everywhere(const std::string& key) {
    each([&](virtual_master& server) { server.put(key, "somebody"); });
}

void virtual_quorum::free_everywhere(const std::string& key) {
    each([&](virtual_master& server) { server.drop(key); });
}

void virtual_quorum::restart(std::size_t master, const std::string& run_id, nanoseconds then) {
    masters[master].restart(run_id, masters[master].wall_us(now_), {});
    disconnect(master, then);
}

void virtual_quorum::put_records() {
    for (virtual_master& server : masters) {
        server.put("p::epoch", core::record_of_new_server(server.run_id));
    }
}

void virtual_quorum::open(std::size_t link) {
    links_[link] = {.id = connections_++};
    at(now_, [this, link, id = links_[link].id] {
        path& way = paths[link];
        if (links_[link].id != id) {
            return;
        }
        if (!way.reachable) {
            link_closed(link, "connection refused");
            return;
        }
        way.last_reply = now_;
        link_opened(link);
    });
}

void virtual_quorum::close(std::size_t link) {
    paths[link].hung = false;
    paths[link].inbox.clear();
    links_[link] = {};
}

std::uint64_t virtual_quorum::ask(core::acquire_request wanted) {
    wanted.cookie = next_cookie_++;
    if (wanted.options.stop_margin == redlock::default_stop_margin && !usual_margins) {
        wanted.options.stop_margin = 0ms;
    }
    operations_[wanted.cookie] = engine.acquire(wanted, now_);
    return wanted.cookie;
}

std::uint64_t virtual_quorum::acquire(
    const acquire_options& options, std::string_view resource, nanoseconds then) {
    return passing(then, ask({.resource = resource, .options = options}));
}

std::uint64_t virtual_quorum::acquire_form(
    core::lock_form form, const acquire_options& options, std::string_view resource) {
    const std::vector<std::string> both{std::string(resource), std::string(resource) + "2"};
    const bool several = form == core::lock_form::all;
    return ask(
        {.resource = resource,
         .options = options,
         .form = form,
         .resources = several ? std::span(both) : std::span<const std::string>()});
}

answer virtual_quorum::acquire_now(const acquire_options& options, std::string_view resource) {
    return awaited(acquire(options, resource));
}

answer virtual_quorum::take(const acquire_options& options, std::string_view resource) {
    answer got = acquire_now(options, resource);
    REQUIRE(got.won);
    return got;
}

std::optional<errc> virtual_quorum::extend_now(const answer& lease, milliseconds ttl) {
    const std::size_t before = extensions_of(lease).size();
    extend(lease, ttl, 10ms);
    REQUIRE(extensions_of(lease).size() == before + 1);
    return extensions_of(lease).back();
}

std::optional<release_result> virtual_quorum::release_now(const answer& lease) {
    release(lease, 10ms);
    return removed_as(lease);
}

const answer& virtual_quorum::awaited(std::uint64_t cookie) {
    if (!run_while_not([&] { return answer_to(cookie) != nullptr; })) {
        throw std::runtime_error("an acquire was not answered");
    }
    return *answer_to(cookie);
}

const answer* virtual_quorum::answer_to(std::uint64_t cookie) const {
    const auto found = answers_.find(cookie);
    return found == answers_.end() ? nullptr : &found->second;
}

const virtual_quorum::history& virtual_quorum::of(const answer& lease) const {
    static const history none;
    const auto found = histories_.find({lease.lease.index, lease.lease.generation});
    return found == histories_.end() ? none : found->second;
}

bool virtual_quorum::is_lost_at(const answer& lease, time_point when) {
    run_until(when - 1ns);
    const bool early = lost_at(lease).has_value();
    run_until(when);
    return !early && lost_at(lease) == when;
}

void virtual_quorum::answered(const core::acquire_call& done, answer what) {
    if (now_ - done.decided_at > engine.rules().master_timeout) { // the rollback takes that at most
        throw std::runtime_error("an acquire ended long after it was decided");
    }
    what.at = now_;
    what.key = done.key;
    what.attempts = done.attempts;
    for (const core::ballot& one : what.ballots.of) {
        what.votes.push_back(one.said);
    }
    if (!answers_.emplace(done.cookie, std::move(what)).second) {
        throw std::runtime_error("an acquire was answered twice");
    }
}

void virtual_quorum::acquired(const core::acquire_call& done, const core::claim& lease) {
    fences.push_back(lease.fencing_token());
    of(lease.self).handed_off = of(lease.self).removed_as.has_value();
    answer what{
        .won = true,
        .lease = lease.self,
        .token = std::string(lease.token_text()),
        .deadline = lease.deadline(),
        .held_until = lease.held_until(),
        .ballots = lease.votes};
    if (lease.is_slot()) {
        what.slots = lease.slots();
    }
    answered(done, std::move(what));
}

void virtual_quorum::not_acquired(const core::acquire_call& done) {
    answered(done, {.why = done.outcome, .ballots = done.last});
}

void virtual_quorum::lease_changed(const core::claim& lease) {
    of(lease.self).deadline = lease.deadline();
}

void virtual_quorum::lease_lost(const core::claim& lease, loss_reason reason) {
    history& its = of(lease.self);
    if (its.lost_at) {
        throw std::runtime_error("a lease was lost twice");
    }
    its.lost_at = now_;
    its.lost_by = reason;
}

void virtual_quorum::extended(const core::claim& lease, std::optional<errc> error) {
    of(lease.self).extensions.push_back(error);
}

void virtual_quorum::removed(const core::claim& lease, release_result result) {
    history& its = of(lease.self);
    if (its.removed_as && !std::exchange(its.handed_off, false)) {
        throw std::runtime_error("a lease was removed twice");
    }
    its.removed_as = result;
    its.release_took = lease.votes.of[0].latency;
}

bool virtual_quorum::has_key(std::string_view resource) {
    for (virtual_master& server : masters) {
        if (server.value_of(key(resource), now_)) {
            return true;
        }
    }
    return false;
}

std::size_t virtual_quorum::asked(std::string_view what) const {
    std::size_t all = 0;
    for (const virtual_master& server : masters) {
        all += server.count(what);
    }
    return all;
}

std::size_t virtual_quorum::logged(std::string_view part) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(log_lines, [part](const std::string& line) {
            return line.find(part) != std::string::npos;
        }));
}

bool virtual_quorum::idle() {
    run_for(milliseconds(200));
    const redlock::metrics counters = engine.count();
    return counters.waiting == 0 && counters.held == 0 && counters.pending_removals == 0
           && engine.next_due() > now_ + std::chrono::minutes(10);
}

} // namespace unit
