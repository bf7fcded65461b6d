// The signals that end a run early. They are blocked, and looked for where time passes, so that all
// processes end and the terminal and the file system are as before.
#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>

namespace redlock::soak {

struct interrupted {
    int signal = 0;
};

class interruption {
public:
    // To be made before any thread.
    interruption() {
        ::sigemptyset(&signals_);
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
            struct sigaction now {};
            ::sigaction(number, nullptr, &now);
            // nohup has a reason.
            if (now.sa_handler != SIG_IGN) {
                ::sigaddset(&signals_, number);
            }
        }
        ::sigprocmask(SIG_BLOCK, &signals_, nullptr);
    }

    // Throws `interrupted` as soon as one of the signals is there.
    void wait_until(std::chrono::steady_clock::time_point until) const {
        using namespace std::chrono;
        const nanoseconds left = std::max<nanoseconds>(until - steady_clock::now(), nanoseconds(0));
        const auto whole = duration_cast<seconds>(left);
        const timespec limit{
            .tv_sec = static_cast<std::time_t>(whole.count()),
            .tv_nsec = static_cast<long>((left - whole).count()),
        };
        if (const int number = ::sigtimedwait(&signals_, nullptr, &limit); number > 0) {
            throw interrupted{number};
        }
    }

private:
    sigset_t signals_{};
};

} // namespace redlock::soak
