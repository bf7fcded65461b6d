#include "parent.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace cli {
namespace {

constexpr pid_t no_process = -1;
volatile pid_t expected_parent = no_process;

// Linux sends the signal at the end of the thread that started us, which is not always the end of
// its process. A process that lives on stays our parent, and its other threads' ends are signaled
// as well.
void look_at_parent(int /*number*/) {
    if (::getppid() != expected_parent) {
        ::kill(::getpid(), SIGTERM);
    }
}

// Whether the process that started this one had ended before `parent` was read, which is then the
// reaper of orphans. A process is in the session of the one that forked it, unless it leads one.
bool is_orphan_of_another_session(pid_t parent) {
    const pid_t mine = ::getsid(0);
    const pid_t session_of_parent =
        parent == 0 ? mine : ::getsid(parent); // 0: in another container
    return mine != ::getpid() && session_of_parent >= 0 && session_of_parent != mine;
}

} // namespace

void end_with(pid_t parent) {
    const int number = SIGRTMIN; // of no use to anybody else here
    expected_parent = is_orphan_of_another_session(parent) ? no_process : parent;
    struct sigaction look {};
    look.sa_handler = look_at_parent;
    look.sa_flags = SA_RESTART;
    ::sigemptyset(&look.sa_mask);
    ::sigaction(number, &look, nullptr);
    ::prctl(PR_SET_PDEATHSIG, number);
    look_at_parent(number); // it may have ended before the line above
}

} // namespace cli
