#include "init.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace cli {
namespace {

// Reaps what has ended. Returns only while the child lives.
void reap(pid_t child) {
    int status = 0;
    for (pid_t one = 0; (one = ::waitpid(-1, &status, WNOHANG)) > 0;) {
        if (one == child) {
            ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        }
    }
}

} // namespace

void be_init() {
    if (::getpid() != 1) {
        return;
    }
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t child = ::fork();
    if (child <= 0) { // without a second process, the tool works as before
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return;
    }
    ::prctl(PR_SET_NAME, "redlock-init");
    while (true) {
        siginfo_t signal{};
        const int number = ::sigwaitinfo(&all, &signal);
        if (number == SIGCHLD) {
            reap(child);
        } else if (number > 0 && signal.si_code != SI_KERNEL) { // the terminal's reach both
            ::kill(child, number);
        }
    }
}

} // namespace cli
