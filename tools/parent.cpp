#include "parent.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace cli {
namespace {

volatile pid_t expected_parent = 0;

// Linux sends the signal at the end of the thread that started us, which is not always the end of
// its process. A process that lives on stays our parent, and its other threads' ends are signaled
// as well.
void look_at_parent(int /*number*/) {
    if (::getppid() != expected_parent) {
        ::kill(::getpid(), SIGTERM);
    }
}

} // namespace

void end_with(pid_t parent) {
    const int number = SIGRTMIN; // of no use to anybody else here
    expected_parent = parent;
    struct sigaction look {};
    look.sa_handler = look_at_parent;
    look.sa_flags = SA_RESTART;
    ::sigemptyset(&look.sa_mask);
    ::sigaction(number, &look, nullptr);
    ::prctl(PR_SET_PDEATHSIG, number);
    look_at_parent(number); // it may have ended before the line above
}

} // namespace cli
