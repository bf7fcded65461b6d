#include "master_log.hpp"

namespace redlock::core {

void master_log::write(log_level level, std::size_t master, std::string_view text) const {
    if (host_.logs(level)) {
        host_.log(level, (rules_.names[master] + ": ").append(text));
    }
}

void master_log::noted(std::size_t master, std::string_view text) const {
    write(log_level::info, master, text);
}

void master_log::clock_stepped(std::size_t master, std::chrono::microseconds by) const {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(by);
    write(
        log_level::warning,
        master,
        "its clock was stepped by " + std::to_string(ms.count()) + " ms, or this machine's was");
}

void master_log::clocks_stepped(std::size_t masters) const {
    if (host_.logs(log_level::warning)) {
        host_.log(
            log_level::warning,
            "the clocks of " + std::to_string(masters)
                + " masters seem to have been stepped at once: taken for a step of this machine's "
                  "clock");
    }
}

void master_log::publish_refused(std::size_t master) const {
    write(
        log_level::warning,
        master,
        "PUBLISH is refused, so releases notify no waiter and waiters poll: "
            + masters_[master].link->unpublished()
            + "; the ACL must allow +publish and the channels &" + rules_.key_prefix + "*");
}

void master_log::voter_changed(std::size_t master, time_point now) const {
    const member& one = masters_[master];
    const bool fault = one.otherwise == vote::duplicate || one.otherwise == vote::error;
    write(
        fault ? log_level::warning : log_level::info,
        master,
        (one.admitted ? "admitted" : "does not vote: ") + masters_.why_not(master, now));
}

void master_log::members_changed() const {
    if (host_.logs(log_level::info)) {
        const generation& present = masters_.members();
        host_.log(
            log_level::info,
            "members of the quorum, generation " + std::to_string(present.number) + ": "
                + shown(present.members));
    }
}

} // namespace redlock::core
