// Loaded into the tool by LD_PRELOAD: writes a line into the file that INHERITED_NOTES names for
// each descriptor that a child process, started by another thread at that moment, would inherit.

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

extern "C" const char* program_invocation_short_name;

namespace {

// The flag of open, of sockets, pipes, timers and the others.
constexpr int close_on_exec = 02000000;
constexpr int at_working_directory = -100;

void note(const char* call, const char* subject = "") noexcept {
    const char* const file = std::getenv("INHERITED_NOTES");
    if (file == nullptr || std::strcmp(program_invocation_short_name, "redlock") != 0) {
        return; // a command that the tool runs
    }
    constexpr int append = 02001 | 0100; // O_APPEND | O_WRONLY | O_CREAT
    const long out =
        ::syscall(SYS_openat, at_working_directory, file, append | close_on_exec, 0600);
    for (const char* const part : {call, " ", subject, "\n"}) {
        ::syscall(SYS_write, out, part, std::strlen(part));
    }
    ::syscall(SYS_close, out);
}

long made(const char* call, int flags, long result, const char* subject = "") noexcept {
    if (result >= 0 && (flags & close_on_exec) == 0) {
        note(call, subject);
    }
    return result;
}

void* open_stream(const char* call, const char* path, const char* mode) noexcept {
    if (std::strchr(mode, 'e') == nullptr) {
        note(call, path);
    }
    using function = void*(const char*, const char*);
    return reinterpret_cast<function*>(::dlsym(RTLD_NEXT, call))(path, mode);
}

int open_file(int directory, const char* path, int flags, std::va_list rest) noexcept {
    return static_cast<int>(made(
        "open",
        flags,
        ::syscall(SYS_openat, directory, path, flags, va_arg(rest, unsigned)),
        path));
}

} // namespace

#define VISIBLE extern "C" __attribute__((visibility("default")))
// NOLINTBEGIN: the names and the parameters are those of the C library
#define CALL(name, parameters, flags, ...)                                                         \
    VISIBLE int name parameters noexcept {                                                         \
        return static_cast<int>(made(#name, flags, ::syscall(__VA_ARGS__)));                       \
    }
#define OPEN(name, parameters, directory)                                                          \
    VISIBLE int name parameters {                                                                  \
        std::va_list rest;                                                                         \
        va_start(rest, flags);                                                                     \
        const int result = open_file(directory, path, flags, rest);                                \
        va_end(rest);                                                                              \
        return result;                                                                             \
    }

CALL(socket, (int family, int type, int which), type, SYS_socket, family, type, which)
CALL(socketpair, (int f, int type, int w, int* ends), type, SYS_socketpair, f, type, w, ends)
CALL(accept, (int from, void* address, void* size), 0, SYS_accept, from, address, size)
CALL(accept4, (int from, void* a, void* size, int flags), flags, SYS_accept4, from, a, size, flags)
CALL(pipe, (int ends[2]), 0, SYS_pipe2, ends, 0)
CALL(pipe2, (int ends[2], int flags), flags, SYS_pipe2, ends, flags)
CALL(dup, (int other), 0, SYS_dup, other)
CALL(epoll_create1, (int flags), flags, SYS_epoll_create1, flags)
CALL(eventfd, (unsigned count, int flags), flags, SYS_eventfd2, count, flags)
CALL(timerfd_create, (int clock, int flags), flags, SYS_timerfd_create, clock, flags)
CALL(signalfd, (int fd, const void* set, int flags), flags, SYS_signalfd4, fd, set, 8L, flags)
OPEN(open, (const char* path, int flags, ...), at_working_directory)
OPEN(open64, (const char* path, int flags, ...), at_working_directory)
OPEN(openat, (int directory, const char* path, int flags, ...), directory)
OPEN(openat64, (int directory, const char* path, int flags, ...), directory)

VISIBLE void* fopen(const char* path, const char* mode) {
    return open_stream("fopen", path, mode);
}
VISIBLE void* fopen64(const char* path, const char* mode) {
    return open_stream("fopen64", path, mode);
}
// NOLINTEND
