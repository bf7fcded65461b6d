#include "process_tree.hpp"

#include <redlock/clock.hpp>

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace cli {
namespace {

// So that they are found within a part of the kill margin, and need few descriptors.
constexpr std::size_t descendants_max = 128;

// -1 if the process has ended, or if the system has none.
int open_process([[maybe_unused]] pid_t pid) noexcept {
#ifdef SYS_pidfd_open
    return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
#else
    return -1;
#endif
}

bool send_to([[maybe_unused]] int descriptor, [[maybe_unused]] int number) noexcept {
#ifdef SYS_pidfd_send_signal
    return ::syscall(SYS_pidfd_send_signal, descriptor, number, nullptr, 0) == 0;
#else
    return false;
#endif
}

// None if the file cannot be opened.
std::optional<std::string> contents_of(const std::string& path) {
    std::FILE* const file = std::fopen(path.c_str(), "re");
    if (file == nullptr) {
        return std::nullopt;
    }
    std::string out;
    std::array<char, 4096> part{};
    while (const std::size_t size = std::fread(part.data(), 1, part.size(), file)) {
        out.append(part.data(), size);
    }
    std::fclose(file);
    return out;
}

struct process_stat {
    std::string name;
    char state = ' ';
    pid_t parent = -1;
    pid_t group = -1;
};

process_stat stat_of(std::string_view pid) {
    const std::string line = contents_of("/proc/" + std::string(pid) + "/stat").value_or("");
    // The name is in brackets and may contain brackets itself.
    const std::size_t name_end = line.rfind(')');
    process_stat out;
    if (name_end != std::string::npos) {
        const std::size_t name = line.find('(') + 1;
        out.name = line.substr(name, name_end - name);
        std::istringstream(line.substr(name_end + 1)) >> out.state >> out.parent >> out.group;
    }
    return out;
}

// The numbers in a directory.
template <typename F>
void for_each_number(const std::string& path, F f) {
    DIR* const directory = ::opendir(path.c_str());
    if (directory == nullptr) {
        return;
    }
    while (const dirent* const entry = ::readdir(directory)) {
        const std::string_view name = entry->d_name;
        pid_t number = 0;
        const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
        if (read.ec == std::errc() && read.ptr == name.data() + name.size()) {
            f(name, number);
        }
    }
    ::closedir(directory);
}

// Of one thread. False if the kernel does not list them.
bool list_children(const std::string& thread, std::vector<pid_t>& into) {
    const std::optional<std::string> found = contents_of(thread + "/children");
    std::istringstream list(found.value_or(""));
    for (pid_t one = 0; list >> one;) {
        into.push_back(one);
    }
    return found.has_value();
}

} // namespace

bool sees_processes() {
    std::array<char, 32> self{};
    const ssize_t size = ::readlink("/proc/self", self.data(), self.size());
    return size > 0
           && std::string_view(self.data(), static_cast<std::size_t>(size))
                  == std::to_string(::getpid());
}

std::vector<pid_t> children() {
    std::vector<pid_t> out;
    const pid_t self = ::getpid();
    // Not every kernel has it.
    if (list_children("/proc/self/task/" + std::to_string(self), out)) {
        return out;
    }
    if (!sees_processes()) {
        return out;
    }
    for_each_number("/proc", [&](std::string_view name, pid_t pid) {
        if (stat_of(name).parent == self) {
            out.push_back(pid);
        }
    });
    return out;
}

bool is_alone(pid_t pid, pid_t group) {
    bool found = false;
    bool others = false;
    for_each_number("/proc", [&](std::string_view name, pid_t one) {
        const process_stat now = stat_of(name);
        if (now.group == group && now.state != 'Z' && now.name != group_leader_name) {
            (one == pid ? found : others) = true;
        }
    });
    return found && !others;
}

bool is_pending(pid_t pid, int number) {
    const std::string status = contents_of("/proc/" + std::to_string(pid) + "/status").value_or("");
    const std::size_t at = status.find("\nShdPnd:");
    return at != std::string::npos
           && (std::stoull(status.substr(at + 9), nullptr, 16) >> (number - 1) & 1U) != 0;
}

bool is_below(pid_t pid, pid_t above) {
    while (pid > 1 && pid != above) {
        pid = stat_of(std::to_string(pid)).parent;
    }
    return pid == above;
}

bool is_supervised(pid_t pid, pid_t group) {
    while (pid > 1) {
        const process_stat now = stat_of(std::to_string(pid));
        if (now.name == supervisor_name && stat_of(std::to_string(now.parent)).group == group) {
            return true;
        }
        pid = now.parent;
    }
    return false;
}

void send_to_children(int number) {
    for (const pid_t one : children()) {
        ::kill(one, number);
    }
}

descendants::descendants() {
    // The list needs a descriptor itself: it comes first, in case there are few.
    for (const pid_t one : children()) {
        all_.push_back({one, -1});
    }
    for (std::size_t i = 0; i < all_.size() && i < descendants_max; ++i) {
        add_children_of(all_[i]);
    }
}

descendants::~descendants() {
    for (const process& one : all_) {
        if (one.descriptor >= 0) {
            ::close(one.descriptor);
        }
    }
}

// A process that ends is reaped by its parent, and then another one may get its number. What a
// descriptor refers to is a child of the parent if that is said after the descriptor was opened,
// and if the number of the parent is still its own after that.
void descendants::add_children_of(process parent) {
    std::vector<pid_t> found;
    const std::string threads = "/proc/" + std::to_string(parent.pid) + "/task";
    for_each_number(threads, [&](std::string_view name, pid_t /*thread*/) {
        list_children(threads + "/" + std::string(name), found);
    });
    for (const pid_t one : found) {
        const int descriptor = all_.size() < descendants_max ? open_process(one) : -1;
        if (descriptor < 0) {
            continue;
        }
        if (stat_of(std::to_string(one)).parent == parent.pid
            && (parent.descriptor < 0 || send_to(parent.descriptor, 0))) {
            all_.push_back({one, descriptor});
        } else {
            ::close(descriptor);
        }
    }
}

void descendants::kill() const noexcept {
    for (auto one = all_.rbegin(); one != all_.rend(); ++one) {
        if (one->descriptor < 0) {
            ::kill(one->pid, SIGKILL);
        } else {
            send_to(one->descriptor, SIGKILL);
        }
    }
}

int kill_all_children() {
    const auto give_up = redlock::clock::now() + dying_max;
    while (true) {
        descendants().kill();
        int left = 0;
        pid_t reaped = 0;
        while ((reaped = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
        }
        if (reaped < 0) {
            return 0;
        }
        left = std::max(1, static_cast<int>(children().size()));
        if (redlock::clock::now() > give_up) {
            return left;
        }
        ::poll(nullptr, 0, static_cast<int>(look_again.count()));
    }
}

} // namespace cli
