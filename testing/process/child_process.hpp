// A child process that outlives neither its object nor the process that owns it. On Linux
// PR_SET_PDEATHSIG ensures the latter: the kernel sends that signal when the *thread* that spawned
// the child ends. Spawn the child from a thread that lives as long as the child (in tests: the main
// thread). On other systems a guardian does this: an additional process that waits for the end of
// ours.
#pragma once

#include <redlock/version.hpp>

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {

// Returns what is in a file, or an empty text if it cannot be read. Unlike a `std::ifstream`, the
// open file is not inherited by child processes.
std::string read_text(const std::filesystem::path& path);

// Returns the file that a shell would run for this name, or an empty path if there is no such file.
std::filesystem::path find_program(const std::string& name);

// The mechanism that ends a child whose parent was killed.
enum class tie { death_signal, guardian };
#if defined(__linux__) && !defined(REDLOCK_PORTABLE)
inline constexpr tie usual_tie = tie::death_signal;
#else
inline constexpr tie usual_tie = tie::guardian;
#endif

class child_process {
public:
    child_process() = default;

    // Runs argv[0], a path, with output and errors appended to a file. The child inherits no other
    // descriptor: sockets of the test must not stay open in it. Throws std::system_error, also if
    // the program cannot be executed.
    child_process(
        const std::vector<std::string>& argv,
        const std::filesystem::path& output,
        tie to_parent = usual_tie);

    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&& other) noexcept; // ends the child held before
    ~child_process();

    pid_t pid() const noexcept { return pid_; } // -1 without a child
    bool running() noexcept;                    // true for a stopped child as well
    bool stopped() const noexcept { return stopped_; }

    void stop();          // SIGSTOP; returns when the child has stopped
    void resume();        // SIGCONT; returns when the child has continued
    int wait();           // waits for its end; returns the exit status, or 128 + signal
    void kill() noexcept; // SIGKILL, and reaps; no effect without a child

private:
    void signal_and_await(int signal, int wait_flag);
    void set_guardian();
    void dismiss_guardian() noexcept;

    pid_t pid_ = -1;
    pid_t guardian_ = -1;
    int life_ = -1;        // open while this process lives; the guardian waits for its end
    bool stopped_ = false; // by `stop`; waiting for a second SIGSTOP would hang
};

}}}} // namespace redlock::REDLOCK_ABI::testing::process
