// A child process that cannot outlive its parent, whatever ends the parent.
#pragma once

#include <sys/types.h>

#include <functional>

namespace demo {

// Owns one process; kills and reaps it.
class child {
public:
    child() noexcept = default;
    // Forks. The child runs `body` and ends with what it returns; it never comes back. Its signals
    // are as they are at the start of a program, and it is in a process group of its own: Ctrl-C is
    // for the parent, which then ends the child in good order.
    explicit child(const std::function<int()>& body);
    child(child&& other) noexcept;
    child& operator=(child&& other) noexcept;
    ~child();

    pid_t id() const noexcept { return pid_; }
    // False once the process has ended.
    bool running() noexcept;
    // How it ended: an exit status, or 128 + the signal. 0 as long as it runs.
    int status() const noexcept { return status_; }
    // SIGSTOP. Returns when the process has stopped: true; false if it ended instead.
    bool stop() noexcept;
    // SIGCONT.
    void resume() noexcept;
    // SIGKILL, also of a stopped process. Returns when it is gone.
    void kill() noexcept;

private:
    void ended(int wait_status) noexcept;

    pid_t pid_ = -1;
    int status_ = 0;
};

} // namespace demo
