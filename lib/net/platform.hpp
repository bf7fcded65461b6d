// What the library needs of the system beyond POSIX: on Linux a timer that runs during suspend, and
// one descriptor for many sockets. Other systems, and builds with the option `portable`, use the
// portable implementation; so the suites can test it on Linux.

#pragma once

#if defined(__linux__) && !defined(REDLOCK_PORTABLE)
#define REDLOCK_LINUX 1
#else
#define REDLOCK_LINUX 0
#endif
