#include "virtual_quorum.hpp"

namespace unit {

namespace core = redlock::core;

core::settings guarded_settings_for(std::size_t masters) {
    core::settings rules = settings_for(masters);
    rules.protocol = redlock::protocol::guarded;
    rules.record_key = "p::epoch";
    return rules;
}

acquire_options once() {
    acquire_options options;
    options.ttl = std::chrono::seconds(10);
    options.wait = redlock::wait_for::none();
    options.renew = redlock::renewal::off;
    return options;
}

acquire_options renewed() {
    acquire_options options = once();
    options.renew = redlock::renewal::automatic;
    return options;
}

acquire_options patient(redlock::wait_for wait) {
    acquire_options options = once();
    options.wait = wait;
    return options;
}

acquire_options fenced() {
    acquire_options options = once();
    options.fencing = true;
    return options;
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
    if (event <= now_ && !(timers_first && due <= now_)) {
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
        way.mute = way.mute || trouble == mishap::hang_after;
        if (way.mute) {
            way.outbox.push_back(reply);
        } else {
            send_reply(link, reply);
        }
    }
}

void virtual_quorum::send_reply(std::size_t link, const std::string& bytes) {
    path& way = paths[link];
    way.last_reply = std::max(way.last_reply, now_ + way.back);
    on_path(link, way.last_reply, [this, link, bytes] { engine.received(link, bytes, now_); });
}

void virtual_quorum::disconnect(std::size_t link, nanoseconds then) {
    if (links_[link].up) {
        forget_bytes(link);
        link_closed(link, "connection reset by peer");
    }
    pass(then);
}

void virtual_quorum::forget_bytes(std::size_t link) {
    path& way = paths[link];
    way.hung = way.mute = false;
    way.inbox.clear();
    way.outbox.clear();
}

void virtual_quorum::resume(std::size_t link, nanoseconds then) {
    path& way = paths[link];
    way.hung = way.mute = false;
    for (const std::string& reply : std::exchange(way.outbox, {})) {
        send_reply(link, reply);
    }
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

void virtual_quorum::answer_scripts(
    std::function<std::string(std::size_t, const arguments&)> answer) {
    for (std::size_t i = 0; i < masters.size(); ++i) {
        masters[i].when = [this, i, answer](const arguments& words) {
            if (words[0].starts_with("EVAL")) {
                masters[i].replies["EVALSHA"] = answer(i, words);
            }
            return mishap::none;
        };
    }
}

void virtual_quorum::restart(std::size_t master, const std::string& run_id, nanoseconds then) {
    masters[master].restart(run_id, masters[master].wall_us(now_), {});
    disconnect(master, then);
}

void virtual_quorum::open(std::size_t link) {
    opens.emplace_back(link, now_);
    links_[link] = {.id = connections_++};
    at(now_, [this, link, id = links_[link].id] {
        path& way = paths[link];
        if (links_[link].id != id || !way.opens) {
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
    forget_bytes(link);
    links_[link] = {};
}

acquire_options virtual_quorum::exact(acquire_options options) const {
    if (options.stop_margin == redlock::default_stop_margin && !usual_margins) {
        options.stop_margin = 0ms;
    }
    return options;
}

std::uint64_t virtual_quorum::acquire(
    const acquire_options& options, std::string_view resource, nanoseconds then) {
    const std::uint64_t cookie = next_cookie_++;
    operations_[cookie] = engine.acquire({cookie, resource, exact(options)}, now_);
    pass(then);
    return cookie;
}

std::uint64_t virtual_quorum::attach(
    const acquire_options& options, std::string_view token, std::string_view resource) {
    const std::uint64_t cookie = next_cookie_++;
    operations_[cookie] = engine.acquire({cookie, resource, exact(options), token, true}, now_);
    return cookie;
}

std::uint64_t virtual_quorum::acquire_slot(
    const acquire_options& options, std::uint32_t slots, std::string_view pool) {
    const std::uint64_t cookie = next_cookie_++;
    operations_[cookie] = engine.acquire(
        {.cookie = cookie, .resource = pool, .options = exact(options), .slots = slots}, now_);
    return cookie;
}

std::uint64_t virtual_quorum::acquire_form(
    core::lock_form form, const acquire_options& options, std::string_view resource) {
    const std::uint64_t cookie = next_cookie_++;
    const std::vector<std::string> resources{std::string(resource), std::string(resource) + "2"};
    const bool several = form == core::lock_form::all;
    operations_[cookie] = engine.acquire(
        {.cookie = cookie,
         .resource = resource,
         .options = exact(options),
         .form = form,
         .resources = several ? std::span(resources) : std::span<const std::string>()},
        now_);
    return cookie;
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
    return extensions_of(lease).back().error;
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

namespace {

std::vector<vote> votes_in(const core::ballots& all) {
    std::vector<vote> votes;
    for (const core::ballot& one : all.of) {
        votes.push_back(one.said);
    }
    return votes;
}

// Finds, or makes a test fail that asks for what was never there.
template <typename Map, typename Name>
auto found_in(const Map& map, const Name& name) {
    const auto found = map.find(name);
    return found == map.end() ? std::nullopt : std::optional(found->second);
}

} // namespace

std::optional<loss> virtual_quorum::loss_of(const answer& lease) const {
    return found_in(losses_, name_of(lease.lease));
}

std::optional<loss_reason> virtual_quorum::lost_by(const answer& lease) const {
    const auto lost = loss_of(lease);
    return lost ? std::optional(lost->why) : std::nullopt;
}

std::optional<time_point> virtual_quorum::lost_at(const answer& lease) const {
    const auto lost = loss_of(lease);
    return lost ? std::optional(lost->at) : std::nullopt;
}

bool virtual_quorum::is_lost_at(const answer& lease, time_point when) {
    run_until(when - 1ns);
    const bool early = loss_of(lease).has_value();
    run_until(when);
    return !early && lost_at(lease) == when;
}

std::optional<release_result> virtual_quorum::removed_as(const answer& lease) const {
    const auto gone = removal_of(lease);
    return gone ? std::optional(gone->what) : std::nullopt;
}

std::optional<removal> virtual_quorum::removal_of(const answer& lease) const {
    const auto found = found_in(removals_, name_of(lease.lease));
    return found ? std::optional(found->back()) : std::nullopt;
}

std::vector<extension_end> virtual_quorum::extensions_of(const answer& lease) const {
    return found_in(extensions_, name_of(lease.lease)).value_or(std::vector<extension_end>{});
}

errors virtual_quorum::extension_errors(const answer& lease) const {
    errors all;
    for (const extension_end& one : extensions_of(lease)) {
        all.push_back(one.error);
    }
    return all;
}

std::vector<time_point> virtual_quorum::deadlines_of(const answer& lease) const {
    return found_in(deadlines_, name_of(lease.lease)).value_or(std::vector<time_point>{});
}

void virtual_quorum::acquired(const core::acquire_call& done, const core::claim& lease) {
    const answer what{
        .at = now_,
        .won = true,
        .why = {},
        .lease = lease.self,
        .key = done.key,
        .token = std::string(lease.token_text()),
        .slots = lease.is_slot() ? lease.slots() : std::vector<std::uint32_t>{},
        .deadline = lease.deadline(),
        .held_until = lease.held_until(),
        .attempts = done.attempts,
        .votes = votes_in(lease.votes),
        .ballots = lease.votes};
    fences.push_back(lease.fencing_token());
    if (removals_.contains(name_of(lease.self))) {
        ++handoffs_[name_of(lease.self)];
    }
    if (!answers_.emplace(done.cookie, what).second) {
        throw std::runtime_error("an acquire was answered twice");
    }
}

void virtual_quorum::not_acquired(const core::acquire_call& done) {
    const answer what{
        .at = now_,
        .won = false,
        .why = done.outcome,
        .lease = {},
        .key = done.key,
        .token = {},
        .slots = {},
        .deadline = {},
        .held_until = {},
        .attempts = done.attempts,
        .votes = votes_in(done.last),
        .ballots = done.last};
    if (!answers_.emplace(done.cookie, what).second) {
        throw std::runtime_error("an acquire was answered twice");
    }
}

void virtual_quorum::lease_changed(const core::claim& lease) {
    deadlines_[name_of(lease.self)].push_back(lease.deadline());
}

void virtual_quorum::lease_lost(const core::claim& lease, loss_reason reason) {
    if (!losses_.emplace(name_of(lease.self), loss{now_, reason}).second) {
        throw std::runtime_error("a lease was lost twice");
    }
}

void virtual_quorum::extended(const core::claim& lease, std::optional<errc> error) {
    extensions_[name_of(lease.self)].push_back({now_, error});
}

void virtual_quorum::removed(const core::claim& lease, release_result result) {
    const removal what{now_, result, votes_in(lease.votes), lease.votes};
    std::vector<removal>& before = removals_[name_of(lease.self)];
    if (before.size() >= 1 + handoffs_[name_of(lease.self)]) {
        throw std::runtime_error("a lease was removed twice");
    }
    before.push_back(what);
}

bool virtual_quorum::has_key(std::string_view resource) {
    for (virtual_master& server : masters) {
        if (server.value_of(key(resource), now_)) {
            return true;
        }
    }
    return false;
}

bool virtual_quorum::idle() {
    run_for(milliseconds(200));
    const redlock::metrics counters = engine.count();
    return counters.waiting == 0 && counters.held == 0 && counters.pending_removals == 0
           && engine.next_due() > now_ + std::chrono::minutes(10);
}

} // namespace unit
