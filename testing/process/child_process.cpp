// fork and exec by hand rather than posix_spawn, which has no way to set the parent-death signal.
// Between the two only async-signal-safe calls are made: other threads may hold any lock.
#include "child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__linux__) && !defined(REDLOCK_PORTABLE)
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <system_error>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace process {
namespace {

constexpr int descriptors_max = 4'096; // for kernels without close_range only

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

void close_descriptors_on_exec() {
#if defined(__linux__) && !defined(REDLOCK_PORTABLE)
    if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0) {
        return;
    }
#endif
    for (int descriptor = 3; descriptor < descriptors_max; ++descriptor) {
        ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    }
}

std::array<int, 2> make_pipe() {
    std::array<int, 2> ends{};
#if defined(__linux__) && !defined(REDLOCK_PORTABLE)
    const int result = ::pipe2(ends.data(), O_CLOEXEC); // another thread may fork just now
#else
    const int result = ::pipe(ends.data());
#endif
    if (result != 0) {
        fail("pipe");
    }
    for (const int end : ends) {
        ::fcntl(end, F_SETFD, FD_CLOEXEC);
    }
    return ends;
}

// The guardian process: waits until the parent's end of the pipe is closed, then kills the child.
[[noreturn]] void guard(pid_t ward, int life) {
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
        ::signal(number, SIG_IGN); // sent to the parent as well, whose end matters
    }
    for (int descriptor = 0; descriptor < descriptors_max; ++descriptor) {
        if (descriptor != life) {
            ::close(descriptor); // also the pipes of other children, which must not stay open here
        }
    }
    char nothing = 0;
    while (::read(life, &nothing, 1) < 0 && errno == EINTR) {
    }
    ::kill(ward, SIGKILL);
    ::_exit(0);
}

// In the child, before anything else. False if the parent has ended already.
bool settle([[maybe_unused]] tie to_parent, pid_t parent) {
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::setpgid(0, 0); // Ctrl-C reaches only the parent, which then ends the child
#if defined(__linux__) && !defined(REDLOCK_PORTABLE)
    if (to_parent == tie::death_signal) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
#endif
    return ::getppid() == parent; // else the parent died before the death signal was set
}

[[noreturn]] void become(char* const* argv, int output, int report, tie to_parent, pid_t parent) {
    if (settle(to_parent, parent)) {
        ::dup2(output, STDOUT_FILENO);
        ::dup2(output, STDERR_FILENO);
        close_descriptors_on_exec();
        ::execv(argv[0], argv);
    }
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(report, &error, sizeof error);
    ::_exit(127);
}

bool can_run(const std::filesystem::path& file) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

pid_t wait_for(pid_t pid, int& status, int flags) {
    pid_t result = 0;
    do {
        result = ::waitpid(pid, &status, flags);
    } while (result < 0 && errno == EINTR);
    return result;
}

} // namespace

std::string read_text(const std::filesystem::path& path) {
    std::string text;
    if (std::FILE* const file = std::fopen(path.c_str(), "re")) {
        std::array<char, 4096> part{};
        while (const std::size_t size = std::fread(part.data(), 1, part.size(), file)) {
            text.append(part.data(), size);
        }
        std::fclose(file);
    }
    return text;
}

std::filesystem::path find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        return can_run(name) ? std::filesystem::path(name) : std::filesystem::path();
    }
    const char* variable = std::getenv("PATH");
    std::istringstream folders(variable != nullptr ? variable : "/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
        const std::filesystem::path candidate = std::filesystem::path(folder) / name;
        if (can_run(candidate)) {
            return candidate;
        }
    }
    return {};
}

child_process::child_process(
    const std::vector<std::string>& argv, const std::filesystem::path& output, tie to_parent) {
    std::vector<std::string> words = argv;
    std::vector<char*> pointers;
    for (std::string& word : words) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);

    const int log = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0) {
        fail("open " + output.string());
    }
    const std::array<int, 2> report = make_pipe(); // closed by an exec, else carries the error
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
        become(pointers.data(), log, report[1], to_parent, parent);
    }
    int error = pid_ < 0 ? errno : 0;
    ::close(log);
    ::close(report[1]);
    if (pid_ > 0) {
        int code = 0;
        ssize_t got = 0;
        do {
            got = ::read(report[0], &code, sizeof code);
        } while (got < 0 && errno == EINTR);
        if (got == sizeof code) {
            error = code;
            wait();
        }
    }
    ::close(report[0]);
    if (error != 0) {
        errno = error;
        fail("cannot run " + argv.front());
    }
    if (to_parent == tie::guardian) {
        set_guardian();
    }
}

void child_process::set_guardian() {
    const std::array<int, 2> life = make_pipe();
    guardian_ = ::fork();
    if (guardian_ == 0) {
        guard(pid_, life[0]);
    }
    const int error = errno;
    ::close(life[0]);
    life_ = life[1];
    if (guardian_ < 0) {
        kill();
        errno = error;
        fail("fork");
    }
}

// Must be called before the child is reaped, because its pid may be reused afterwards.
void child_process::dismiss_guardian() noexcept {
    if (guardian_ > 0) {
        ::kill(guardian_, SIGKILL);
        int status = 0;
        wait_for(guardian_, status, 0);
    }
    guardian_ = -1;
    if (life_ >= 0) {
        ::close(std::exchange(life_, -1));
    }
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      guardian_(std::exchange(other.guardian_, -1)),
      life_(std::exchange(other.life_, -1)),
      stopped_(std::exchange(other.stopped_, false)) {}

child_process& child_process::operator=(child_process&& other) noexcept {
    if (this != &other) {
        kill();
        pid_ = std::exchange(other.pid_, -1);
        guardian_ = std::exchange(other.guardian_, -1);
        life_ = std::exchange(other.life_, -1);
        stopped_ = std::exchange(other.stopped_, false);
    }
    return *this;
}

child_process::~child_process() {
    kill();
}

bool child_process::running() noexcept {
    int status = 0;
    if (pid_ > 0 && wait_for(pid_, status, WNOHANG) != 0) {
        pid_ = -1;
        dismiss_guardian();
    }
    return pid_ > 0;
}

void child_process::stop() {
    if (!stopped_) {
        signal_and_await(SIGSTOP, WUNTRACED);
        stopped_ = true;
    }
}

void child_process::resume() {
    if (stopped_) {
        signal_and_await(SIGCONT, WCONTINUED);
        stopped_ = false;
    }
}

void child_process::signal_and_await(int signal, int wait_flag) {
    if (pid_ <= 0 || ::kill(pid_, signal) != 0) {
        throw std::runtime_error("signal " + std::to_string(signal) + ": no child process");
    }
    int status = 0;
    const pid_t changed = wait_for(pid_, status, wait_flag);
    if (changed != pid_ || WIFEXITED(status) || WIFSIGNALED(status)) {
        pid_ = -1;
        dismiss_guardian();
        throw std::runtime_error(
            "the child process ended when it was sent signal " + std::to_string(signal));
    }
}

int child_process::wait() {
    int status = 0;
    const pid_t pid = std::exchange(pid_, -1);
    if (pid <= 0 || wait_for(pid, status, 0) != pid) {
        throw std::runtime_error("no child process to wait for");
    }
    dismiss_guardian();
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void child_process::kill() noexcept {
    const pid_t pid = std::exchange(pid_, -1);
    stopped_ = false;
    dismiss_guardian();
    if (pid > 0) {
        ::kill(pid, SIGKILL);
        int status = 0;
        wait_for(pid, status, 0);
    }
}

}}}} // namespace redlock::REDLOCK_ABI::testing::process
