#include "engine.hpp"

#include "decisions.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace redlock::core {

namespace {

std::uint64_t seed_from(host& outside) {
    std::array<unsigned char, sizeof(std::uint64_t)> bytes{};
    outside.random(bytes);
    std::uint64_t seed = 0;
    std::memcpy(&seed, bytes.data(), sizeof seed);
    return seed;
}

} // namespace

engine::engine(settings rules, host& outside)
    : rules_(std::move(rules)),
      host_(outside),
      random_(seed_from(outside)),
      removals_(rules_.size(), rules_.removals_max, rules_.turn_max) {
    assert(rules_.size() >= 1 && rules_.size() <= masters_max);
    masters_.resize(rules_.size());
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        masters_[i].link = std::make_unique<connection>(
            i, rules_, static_cast<connection_events&>(*this), random_);
        masters_[i].pushes = std::make_unique<subscriber>(
            i, rules_, static_cast<subscriber_events&>(*this), random_);
    }
}

engine::~engine() = default;

void engine::start(time_point now) {
    assert(life_ == life::created);
    life_ = life::running;
    for (member& one : masters_) {
        one.link->start(now);
    }
    refresh_links_due();
}

void engine::close(time_point now) {
    if (closing()) {
        return;
    }
    const bool ran = life_ == life::running;
    life_ = life::closing;
    close_by_ = ran ? later(now, rules_.master_timeout) : now;
    operations_.for_each([&](operation& wanted) {
        if (wanted.stage == operation::phase::finishing) {
            return;
        }
        if (claim* const attempt = claims_.find(wanted.attempt);
            wanted.stage == operation::phase::attempting && attempt != nullptr) {
            fail(wanted, *attempt, errc::closed, now);
        } else {
            wanted.outcome = errc::closed;
            finish(wanted, now);
        }
    });
    claims_.for_each([&](claim& lease) {
        if (lease.stage == claim::phase::held) {
            lose(lease, loss_reason::closed, now);
        }
    });
    queries_.for_each([&](query& asked) { query_done(asked); });
    surveys_.for_each(
        [&](survey& asking) { status_found(asking); }); // those of acquires have ended
    finish_closing(now);
}

// Closing has ended when all holders have let go and every removal that could be sent was answered,
// or when nothing of that has moved for `master_timeout`. What is not let go by then stays until
// its ttl: closing must not take a lock away from code that still runs.
void engine::finish_closing(time_point now) {
    if (life_ != life::closing || (now < close_by_ && waits_to_close())) {
        return;
    }
    life_ = life::closed;
    close_by_ = judge_steps_at_ = forever;
    removals_.clear_due();
    for (member& one : masters_) {
        one.link->stop("the manager was closed", now);
        one.pushes->stop("the manager was closed");
    }
    claims_.for_each([&](claim& ended) {
        if (ended.acts() || ended.end.wanted()) {
            host_.removed(ended, release_result::uncertain);
        }
        timers_.cancel(ended.wake);
        claims_.destroy(ended);
    });
    refresh_links_due();
    host_.closed();
}

void engine::opened(std::size_t link, time_point now) {
    if (link < size()) {
        masters_[link].link->opened(now);
    } else {
        masters_[link - size()].pushes->opened(now);
    }
    refresh_links_due();
    wants_write_ = true;
}

void engine::closed(std::size_t link, std::string_view why, time_point now) {
    if (link < size()) {
        masters_[link].link->closed(why, now);
    } else {
        masters_[link - size()].pushes->closed(why, now);
        hearing_changed(now);
        refresh_links_due();
    }
    end_of_event(now);
}

void engine::received(std::size_t link, std::span<const char> bytes, time_point now) {
    if (link < size()) {
        masters_[link].link->received(bytes, now);
    } else {
        masters_[link - size()].pushes->received(bytes, now);
        hearing_changed(now);
        refresh_links_due();
    }
    // What a connection says of itself, a handshake, is not the engine's to know of.
    wants_write_ = wants_write_ || !output(link).empty();
    end_of_event(now);
}

void engine::written(std::size_t link, std::size_t bytes, time_point now) {
    if (link < size()) {
        masters_[link].link->written(bytes);
        end_of_event(now);
    }
}

// What waited for a socket may be done: because bytes were written, or because it is gone.
void engine::end_of_event(time_point now) {
    if (!finishing_.empty()) {
        const std::vector<handle> candidates = finishing_;
        for (const handle name : candidates) {
            if (operation* const wanted = operations_.find(name)) {
                finish_if_on_wire(*wanted, now);
            }
        }
    }
    finish_closing(now);
}

time_point engine::next_due() const noexcept {
    return std::min({timers_.next(), links_due_, removals_.due(), close_by_, judge_steps_at_});
}

// A lower bound is enough, and is kept so: a command that is sent lowers it, its answer does not
// raise it, and whoever is woken too early finds out here. So a steady load need not look at each
// master.
void engine::refresh_links_due() noexcept {
    links_due_ = forever;
    for (const member& one : masters_) {
        links_due_ = std::min({links_due_, one.link->next_due(), one.pushes->next_due()});
        if (one.otherwise == vote::quarantined && !one.admitted) {
            links_due_ = std::min(links_due_, one.link->judgement().votes_from);
        }
    }
}

std::uint64_t
engine::send(std::size_t master, std::string_view bytes, const ticket& what, time_point now) {
    links_due_ = std::min(links_due_, later(now, rules_.master_timeout));
    wants_write_ = true;
    return masters_[master].link->send(bytes, what, now);
}

void engine::time_passed(time_point now) {
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        masters_[i].link->time_passed(now);
        masters_[i].pushes->time_passed(now);
        if (!masters_[i].admitted && masters_[i].otherwise == vote::quarantined) {
            assess(i, now);
        }
    }
    hearing_changed(now);
    if (now >= judge_steps_at_) {
        judge_steps(now);
    }
    // What is left is due still: `next_due` says so, and others have their turn in between.
    for (std::size_t i = 0; i < rules_.turn_max; ++i) {
        timer* const due = timers_.pop(now);
        if (due == nullptr) {
            break;
        }
        fire(*due, now);
    }
    if (now >= removals_.due()) {
        removals_.clear_due();
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            pay_debts(i, now);
        }
    }
    end_of_event(now);
    refresh_links_due();
    wants_write_ = true; // PING, INFO
}

void engine::fire(timer& due, time_point now) {
    switch (due.owner) {
    case timer_owner::operation:
        if (operation* const wanted = operations_.find(due.subject)) {
            operation_due(*wanted, now);
        }
        break;
    case timer_owner::query:
        if (query* const asked = queries_.find(due.subject)) {
            query_done(*asked);
        }
        break;
    case timer_owner::survey:
        if (survey* const asking = surveys_.find(due.subject)) {
            status_found(*asking);
        }
        break;
    case timer_owner::claim:
        if (claim* const owner = claims_.find(due.subject)) {
            if (owner->stage == claim::phase::held) {
                lease_due(*owner, now);
            } else if (owner->stage == claim::phase::lost) {
                end_lost(*owner, now);
            } else if (owner->stage == claim::phase::removing) {
                removal_due(*owner, now);
            }
        }
        break;
    }
}

void engine::open(std::size_t master) {
    host_.open(master);
}

void engine::close(std::size_t master) {
    host_.close(master);
}

void engine::noted(std::size_t master, std::string_view text) {
    if (host_.logs(log_level::info)) {
        host_.log(log_level::info, rules_.names[master] + ": " + std::string(text));
    }
}

// Which clock was stepped, the others tell: all are looked at, and judged when they had time to
// answer.
void engine::clock_stepped(std::size_t master, std::chrono::microseconds by, time_point now) {
    if (wrong::step_ends_quarantine || masters_[master].stepped) {
        return;
    }
    masters_[master].stepped = true;
    if (host_.logs(log_level::warning)) {
        const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(by);
        host_.log(
            log_level::warning,
            rules_.names[master] + ": its clock was stepped by " + std::to_string(ms.count())
                + " ms, or this machine's was");
    }
    if (judge_steps_at_ != forever) {
        return;
    }
    judge_steps_at_ = later(now, rules_.master_timeout);
    for (member& one : masters_) {
        if (!one.stepped && one.link->up()) {
            one.link->ask_for_clock(now);
        }
    }
    refresh_links_due();
    wants_write_ = true;
}

// A master whose clock was stepped may end its quarantine too early: its memory begins anew. If
// several seem to have been stepped at once, our own clock was: then nothing is written.
void engine::judge_steps(time_point now) {
    judge_steps_at_ = forever;
    const auto stepped = std::ranges::count_if(masters_, &member::stepped);
    if (stepped > 1 && host_.logs(log_level::warning)) {
        host_.log(
            log_level::warning,
            "the clocks of " + std::to_string(stepped)
                + " masters seem to have been stepped at once: taken for a step of this machine's "
                  "clock");
    }
    for (member& one : masters_) {
        if (std::exchange(one.stepped, false) && stepped == 1 && rules_.quarantine) {
            one.link->restart_memory(now);
        }
    }
    wants_write_ = true;
}

void engine::standing_changed(std::size_t master, time_point now) {
    const connection& link = *masters_[master].link;
    masters_[master].queue_refused = masters_[master].queue_refused && link.up();
    if (link.up()) {
        find_duplicates(master);
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if (i != master) {
                assess(i, now);
            }
        }
    }
    assess(master, now);
    removals_.stop_search(master);
    if (link.up()) {
        removals_.search(master, now);
        pay_debts(master, now);
    }
    refresh_links_due();
}

// One server may vote once, whatever its names. The first that was seen keeps the vote, also while
// it is away: its other name must not vote beside what it has already granted.
void engine::find_duplicates(std::size_t changed) {
    const auto same = [&](std::size_t a, std::size_t b) {
        const std::string& run_id = masters_[a].link->info().run_id;
        return a != b && !run_id.empty() && run_id == masters_[b].link->info().run_id;
    };
    const auto is_duplicate = [&](std::size_t one) {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if (same(one, i) && !masters_[i].duplicate) {
                return true;
            }
        }
        return false;
    };
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if (masters_[i].duplicate) {
            masters_[i].duplicate = is_duplicate(i);
        }
    }
    masters_[changed].duplicate = is_duplicate(changed);
}

// Brings up to date whether a master votes, and what it votes if it doesn't.
void engine::assess(std::size_t master, time_point now) {
    member& one = masters_[master];
    const connection& link = *one.link;
    const vote before = one.otherwise;
    if (!link.up()) {
        one.otherwise = link.refused() ? vote::error : vote::unreachable;
    } else if (one.duplicate) {
        one.otherwise = vote::duplicate;
    } else if (!link.judgement().fit) {
        one.otherwise = vote::error;
    } else if (now < link.judgement().votes_from) {
        one.otherwise = vote::quarantined;
    } else if (link.silent()) {
        one.otherwise = vote::timed_out;
    } else {
        one.otherwise = vote::granted;
    }
    const bool admitted = one.otherwise == vote::granted;
    if (admitted == one.admitted && before == one.otherwise) {
        return;
    }
    const bool was_ready = ready();
    if (admitted != one.admitted) {
        one.admitted = admitted;
        admitted_ = admitted ? admitted_ + 1 : admitted_ - 1;
    }
    if (link.up() && host_.logs(log_level::warning)) {
        const bool fault = one.otherwise == vote::duplicate || one.otherwise == vote::error;
        const log_level level = fault ? log_level::warning : log_level::info;
        if (host_.logs(level)) {
            host_.log(
                level,
                rules_.names[master] + (admitted ? ": admitted" : ": does not vote: ")
                    + why_not(master, now));
        }
    }
    if (!was_ready && ready()) {
        retry_after_outage(now);
    }
}

} // namespace redlock::core
