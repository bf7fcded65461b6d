// The worker processes.
#pragma once

#include "board.hpp"
#include "process/child_process.hpp"
#include "settings.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace demo {

class crew {
public:
    // Forks the workers: to be called while this process has one thread and no io_context.
    crew(board& shared, const settings& chosen, const std::vector<std::string>& urls);

    std::size_t size() const noexcept { return processes_.size(); }

    // Stops, as a long pause would, a worker that has the lock and has not yet begun to write.
    // Returns which one; nothing if there was none at this moment.
    std::optional<std::size_t> freeze_a_holder();
    void resume(std::size_t index);

    // The workers that are still there.
    std::size_t running() noexcept;
    // Nothing, or what ended the first worker that did not end in good order.
    std::string failure() const;
    void kill() noexcept;

private:
    board& board_;
    std::vector<redlock::testing::process::child_process> processes_;
};

} // namespace demo
