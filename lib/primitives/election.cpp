#include "manager/manager_impl.hpp"
#include "procedure.hpp"

#include <redlock/election.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>

#include <algorithm>
#include <memory>

namespace redlock { inline namespace REDLOCK_ABI {

namespace asio = boost::asio;

using detail::manager_impl;

namespace {

constexpr std::chrono::milliseconds poll_min(10);

leader_status status_of(const lock_status& found) {
    return {found.state, found.owner, found.time_left};
}

// Repeats queries until the leader changes.
class observation : public detail::procedure<observation> {
    friend procedure;

public:
    using handler = asio::any_completion_handler<void(error_code, leader_status)>;

    observation(
        const std::shared_ptr<manager_impl>& manager,
        std::string name,
        std::string seen,
        std::chrono::milliseconds poll,
        handler done)
        : procedure(manager->io()),
          manager_(manager),
          name_(std::move(name)),
          seen_(std::move(seen)),
          poll_(poll),
          pause_(poll_min),
          done_(std::move(done), io_) {
        manager->listen(name_);
    }
    observation(const observation&) = delete;
    observation& operator=(const observation&) = delete;
    ~observation() {
        if (const auto manager = manager_.lock()) {
            manager->unlisten(name_);
        }
    }

    void ask() {
        const auto manager = manager_.lock();
        if (!manager) {
            finish(errc::closed, {});
            return;
        }
        notifications_ = manager->notifications_of(name_);
        manager->query(name_, step([](observation& me, error_code error, const lock_status& found) {
                           me.answered(error, found);
                       }));
    }

private:
    void answered(error_code error, const lock_status& found) {
        if (!error && cancelled_) { // too late for the query to notice
            error = detail::aborted;
        }
        const bool told = found.state != lock_state::undecided;
        if (error || (told && found.owner != seen_)) {
            finish(error, error ? leader_status() : status_of(found));
            return;
        }
        // An unknown result is probably a change of leader or an outage: retry less and less often.
        pause_ = told ? poll_min : std::min(2 * pause_, poll_);
        std::chrono::milliseconds pause = told ? poll_ : pause_;
        if (told && found.time_left) {
            pause = std::min(pause, *found.time_left + poll_min);
        }
        const auto manager = manager_.lock();
        if (!manager) {
            finish(errc::closed, {});
            return;
        }
        manager->wait_notification(
            name_,
            notifications_,
            core::later(manager->now(), pause),
            step([](observation& me, error_code failed) {
                failed ? me.finish(failed, {}) : me.ask();
            }));
    }

    void finish(error_code error, leader_status found) {
        std::move(done_)(io_, error, std::move(found));
    }

    std::weak_ptr<manager_impl> manager_; // weak: it may own this as a waiting handler
    std::string name_;
    std::string seen_;
    std::chrono::milliseconds poll_;
    std::chrono::milliseconds pause_;
    detail::completion<error_code, leader_status> done_;
    std::uint64_t notifications_ = 0;
};

} // namespace

election::election(lock_manager& manager, std::string name, election_options options)
    : manager_(detail::share(manager)),
      name_(std::move(name)),
      options_(options) {}

acquire_options election::term() const {
    acquire_options wanted;
    wanted.ttl = options_.ttl;
    wanted.wait = options_.wait;
    wanted.stop_margin = options_.stop_margin;
    wanted.max_hold = options_.max_term;
    wanted.order = options_.order;
    const config& rules = manager_->configuration();
    wanted.fencing = rules.protocol == protocol::guarded;
    return wanted;
}

void election::start_campaign(
    const election& mine, sink votes, handler<void(error_code, lock)> done) {
    mine.manager_->acquire({.names = mine.name_, .options = mine.term()}, votes, std::move(done));
}

void election::start_lead(
    const election& mine, locked_work work, sink votes, handler<void(std::exception_ptr)> done) {
    detail::start_with_lock(
        mine.manager_, mine.name_, mine.term(), std::move(work), votes, std::move(done));
}

void election::start_observe(
    const election& mine,
    std::optional<std::string> seen,
    handler<void(error_code, leader_status)> done) {
    const auto& manager = mine.manager_;
    if (!seen) {
        manager->query(
            mine.name_,
            detail::adapt(
                std::move(done), [](auto caller, error_code error, const lock_status& found) {
                    std::move(caller)(error, status_of(found));
                }));
        return;
    }
    const auto slot = asio::get_associated_cancellation_slot(done);
    const auto begun = std::make_shared<observation>(
        manager,
        mine.name_,
        *std::move(seen),
        std::max(mine.options_.poll, poll_min),
        std::move(done));
    begun->cancel_by(slot, detail::without_effects);
    begun->ask();
}

}} // namespace redlock::REDLOCK_ABI
