// Exit statuses of the tool itself. docs/cli.md has the same list.

#pragma once

#include <stdexcept>
#include <string>

namespace cli {

/// Outside of what programs use: 0 to 125, 126 and 127 of shells, and 128 plus a signal.
enum class exit_code : int {
    done = 0,
    held = 200,      ///< another owner holds the lock, or the wait timed out
    no_quorum = 201, ///< too few masters could vote
    lost = 202,      ///< the lock was lost: under the command, or before a release or an extension
    usage = 203,     ///< the command line is wrong
    configuration = 204,  ///< a variable, a file or a value in them is wrong
    internal = 205,       ///< anything else, such as no more processes
    undecided = 206,      ///< status: neither held nor free; release: no majority agrees
    warnings = 207,       ///< doctor: nothing is broken, but something should change
    broken = 208,         ///< doctor: no majority to lock on, or an assumption does not hold
    degraded = 209,       ///< doctor: a minority of the masters is broken, and locks work
    not_executable = 126, ///< the command was found, and cannot be run; as of a shell
    not_found = 127,      ///< the command was not found; as of a shell
};

/// Ends the program; the text goes to standard error.
class failure : public std::runtime_error {
public:
    failure(exit_code code, const std::string& sentence)
        : std::runtime_error(sentence),
          code_(code) {}
    exit_code code() const noexcept { return code_; }

private:
    exit_code code_;
};

} // namespace cli
