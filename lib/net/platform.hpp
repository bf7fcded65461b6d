// What the library needs of the system beyond POSIX: on Linux a timer that runs during suspend, and
// one descriptor for many sockets. Sockets are closed on exec from their creation on, on systems
// that have such sockets. Other systems, and builds with the option `portable`, use the portable
// implementation; so the suites can test it on Linux.

#pragma once

#include <sys/socket.h>

#if defined(__linux__) && !defined(REDLOCK_PORTABLE)
#define REDLOCK_LINUX 1
#else
#define REDLOCK_LINUX 0
#endif

#if defined(SOCK_CLOEXEC) && !defined(REDLOCK_PORTABLE)
#define REDLOCK_SOCKET_FLAGS SOCK_CLOEXEC
#else
#define REDLOCK_SOCKET_FLAGS 0
#endif
