#include "disrupted_master.hpp"
#include "primitives/virtual_thread.hpp"
#include "virtual_world.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace detail {

struct virtual_blocking {
    static blocking::manager make(lock_manager locks, std::shared_ptr<virtual_thread> time) {
        return {std::move(locks), std::move(time)};
    }
};

} // namespace detail

namespace testing {

namespace {

// A blocking call advances the time until it is over.
class world_thread final : public detail::virtual_thread {
public:
    explicit world_thread(virtual_world& all) noexcept : all_(all) {}

    bool in_handler() const noexcept override { return all_.running; }
    bool run_until(
        const std::function<bool()>& over,
        std::optional<std::chrono::milliseconds> limit) override {
        return all_.run_until(all_.now() + limit.value_or(std::chrono::hours(1)), over);
    }

private:
    virtual_world& all_;
};

} // namespace

struct virtual_quorum::in_memory final : testing::master::server {
    in_memory(virtual_world& all, std::size_t number) noexcept : world(all), index(number) {}

    void kill() override { world.kill(there()); }
    void restart(bool keeps_data) override { world.restart(index, keeps_data); }
    void hang() override { there().hung = true; }
    void resume() override {
        there().hung = false;
        world.each_connection(there(), [](listener& one) { one.read(); });
    }
    void cut() override {
        world.each_connection(there(), [](listener& one) { one.cut(); });
    }
    std::string command(const std::vector<std::string>& words) override {
        return world.command(there(), words);
    }

    memory_master& there() const { return *world.masters.at(index); }

    virtual_world& world;
    const std::size_t index;
};

virtual_quorum::virtual_quorum(std::size_t masters, config settings)
    : world_(std::make_unique<virtual_world>(masters, std::move(settings))) {}

virtual_quorum::~virtual_quorum() = default;

boost::asio::io_context& virtual_quorum::context() noexcept {
    return world_->context;
}

lock_manager& virtual_quorum::manager() {
    return world_->managers.empty() ? world_->add_manager() : world_->managers.front();
}

lock_manager& virtual_quorum::add_manager() {
    manager(); // the first manager is the one under test
    return world_->add_manager();
}

lock_manager virtual_quorum::make_manager() {
    return world_->make_manager();
}

blocking::manager virtual_quorum::make_blocking_manager() {
    return detail::virtual_blocking::make(
        world_->make_manager(), std::make_shared<world_thread>(*world_));
}

std::size_t virtual_quorum::size() const noexcept {
    return world_->masters.size();
}

master virtual_quorum::master(std::size_t index) {
    const auto there = std::make_shared<in_memory>(*world_, index);
    static_cast<void>(there->there()); // throws if there is none
    return testing::master(there);
}

void virtual_quorum::answer_after(std::size_t index, std::chrono::nanoseconds span) {
    world_->masters.at(index)->round_trip = span;
}

time_point virtual_quorum::now() const noexcept {
    return world_->now();
}

void virtual_quorum::advance(std::chrono::nanoseconds span) {
    world_->run_until(now() + span, nullptr);
}

bool virtual_quorum::advance_until(
    const std::function<bool()>& done, std::chrono::nanoseconds limit) {
    return world_->run_until(now() + limit, done);
}

void virtual_quorum::freeze(std::chrono::nanoseconds span) {
    world_->freeze(now() + span);
}

void virtual_quorum::occupy(std::string_view resource, std::chrono::milliseconds ttl) {
    for (const auto& one : world_->masters) {
        world_->command(
            *one,
            {"SET",
             world_->key(resource),
             std::string(40, 'f'), // as long as a token
             "PX",
             std::to_string(ttl.count())});
    }
}

std::size_t virtual_quorum::keys_of(std::string_view resource) {
    std::size_t found = 0;
    for (const auto& one : world_->masters) {
        found += world_->command(*one, {"EXISTS", world_->key(resource)}) == "1" ? 1U : 0U;
    }
    return found;
}

void virtual_quorum::sleep(
    std::chrono::nanoseconds span, boost::asio::any_completion_handler<void(error_code)> done) {
    struct sleeper {
        sleeper(
            boost::asio::any_completion_handler<void(error_code)>&& waiting,
            const boost::asio::any_io_executor& io)
            : home(io),
              done(std::in_place, std::move(waiting), home) {}

        void wake(error_code error) {
            if (done) {
                auto waiting = *std::move(done);
                done.reset();
                std::move(waiting)(home, error);
            }
        }

        detail::home home;
        std::optional<detail::completion<error_code>> done;
    };
    auto slot = boost::asio::get_associated_cancellation_slot(done);
    const auto made = std::make_shared<sleeper>(std::move(done), context().get_executor());
    if (slot.is_connected()) {
        slot.assign([weak = std::weak_ptr(made)](boost::asio::cancellation_type) {
            if (const auto self = weak.lock()) {
                self->wake(boost::asio::error::operation_aborted);
            }
        });
    }
    world_->client_events.emplace(now() + span, [made] { made->wake({}); });
}

} // namespace testing

}} // namespace redlock::REDLOCK_ABI
