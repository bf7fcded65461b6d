#include "show.hpp"

namespace redlock::soak {
namespace {

using namespace std::chrono_literals;

constexpr auto picture_interval = 100ms;
constexpr auto line_interval = 1s;
constexpr std::size_t everything = 1'000;

} // namespace

show::show(site& where, timeline& events, screen& output, std::string title)
    : screen_(output),
      observer_(io_.get_executor(), where, events),
      view_(output, where, observer_, events, std::move(title)) {
    screen_.enter();
}

void show::go_on(clock::time_point until) {
    io_.run_until(until);
    observer_.look();
    const auto now = clock::now();
    if (now < next_) {
        return;
    }
    if (screen_.is_terminal()) {
        screen_.draw(view_.picture(screen_.rows()));
        next_ = now + picture_interval;
    } else {
        screen_.print(view_.summary_line());
        next_ = now + line_interval;
    }
}

void show::end() {
    screen_.leave();
    if (screen_.is_terminal()) {
        for (const auto& line : view_.picture(everything)) {
            screen_.print(line);
        }
        screen_.print("");
    }
}

} // namespace redlock::soak
