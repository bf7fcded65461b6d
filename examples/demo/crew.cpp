#include "crew.hpp"

#include "worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>

namespace demo {
namespace {

using redlock::testing::process::child_process;

int worker_process(
    board& shared,
    std::size_t index,
    const settings& chosen,
    const std::vector<std::string>& urls) {
    auto& failure = shared.workers.at(index).failure;
    try {
        return worker(shared, index, chosen, urls).run();
    } catch (const std::exception& error) {
        fmt::format_to_n(failure.data(), failure.size() - 1, "{}", error.what());
        return 1;
    }
}

// False if it ended instead.
bool stop(child_process& one) {
    try {
        one.stop();
        return true;
    } catch (const std::runtime_error&) {
        return false;
    }
}

} // namespace

crew::crew(board& shared, const settings& chosen, const std::vector<std::string>& urls)
    : board_(shared) {
    for (std::size_t i = 0; i < chosen.workers; ++i) {
        processes_.emplace_back(
            std::function<int()>([&] { return worker_process(shared, i, chosen, urls); }));
    }
}

std::optional<std::size_t> crew::freeze_a_holder() {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        if (board_.workers[i].doing != activity::working || !stop(processes_[i])) {
            continue;
        }
        // Now that it cannot move. Between its last look at the lock and its write it must not be
        // stopped for long: no lock without fencing helps against that.
        if (board_.workers[i].doing == activity::working) {
            return i;
        }
        resume(i);
    }
    return std::nullopt;
}

void crew::resume(std::size_t index) {
    if (processes_.at(index).running()) {
        processes_[index].resume();
    }
}

std::size_t crew::running() noexcept {
    return static_cast<std::size_t>(std::count_if(
        processes_.begin(), processes_.end(), [](child_process& one) { return one.running(); }));
}

std::string crew::failure() const {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        if (const int status = processes_[i].status(); status != 0) {
            return fmt::format(
                "worker {} ended with {}: {}", i + 1, status, board_.workers[i].failure.data());
        }
    }
    return {};
}

void crew::kill() noexcept {
    for (auto& one : processes_) {
        one.kill();
    }
}

} // namespace demo
