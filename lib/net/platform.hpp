// What is asked of the system beyond POSIX: on Linux a timer that a suspended machine wakes for,
// and one descriptor that stands for many. Every such place has another way, which other systems
// take, and so does a build with the option `portable`: the suites can run it here.

#pragma once

#if defined(__linux__) && !defined(REDLOCK_PORTABLE)
#define REDLOCK_LINUX 1
#else
#define REDLOCK_LINUX 0
#endif
