// What happened, in order: what was done to the masters and workers, and what came of it.
#pragma once

#include <redlock/clock.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::soak {

struct event {
    std::chrono::duration<double> at{};
    bool injected = false; // done by the injector; else seen
    std::string text;
};

class timeline {
public:
    std::chrono::duration<double> elapsed() const noexcept {
        return redlock::clock::now() - start_;
    }

    void injected(std::string text) { add(true, std::move(text)); }
    void seen(std::string text) { add(false, std::move(text)); }

    const std::vector<event>& events() const noexcept { return events_; }

    // Called with each event as it happens.
    std::function<void(const event&)> on_event;

private:
    void add(bool injected, std::string text) {
        events_.push_back({elapsed(), injected, std::move(text)});
        if (on_event) {
            on_event(events_.back());
        }
    }

    redlock::time_point start_ = redlock::clock::now();
    std::vector<event> events_;
};

} // namespace redlock::soak
