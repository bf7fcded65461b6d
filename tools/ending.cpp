#include "ending.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace cli {

int ending(int status) {
    if (const int number = status / of_group; number != 0) {
        ::signal(number, SIG_IGN);
        ::kill(0, number);
        status %= of_group;
    }
    if ((status & by_signal) == 0) {
        return status;
    }
    const int number = status & (by_signal - 1);
    ::prctl(PR_SET_DUMPABLE, 0); // QUIT: the core of the command is the useful one
    ::signal(number, SIG_DFL);
    sigset_t it;
    ::sigemptyset(&it);
    ::sigaddset(&it, number);
    ::sigprocmask(SIG_UNBLOCK, &it, nullptr);
    ::kill(::getpid(), number);
    return 128 + number; // as process 1 of a container, which no signal of its own ends
}

} // namespace cli
