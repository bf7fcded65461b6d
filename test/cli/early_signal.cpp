// Loaded into the tool by LD_PRELOAD: the first process that it forks gets INT at once, as it may
// from a Ctrl-C at that moment.

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace {

int forks_before = 0; // of this process and of those that it descends from

void interrupt_the_first() {
    if (forks_before++ == 0) {
        ::kill(::getpid(), SIGINT);
    }
}

__attribute__((constructor)) void set_up() {
    ::pthread_atfork(nullptr, nullptr, interrupt_the_first);
}

} // namespace
