// The terms of a command under a lock: when it has to end, and what lock it asks for.

#pragma once

#include "run.hpp"
#include "supervisor.hpp"

#include <redlock/config.hpp>
#include <redlock/options.hpp>

#include <string>
#include <vector>

namespace cli {

class terms {
public:
    /// `options` must live as long. Throws `failure` if they do not fit each other.
    terms(const run_options& options, const redlock::config& configuration);

    /// The quorum may allow less than the usual ttl: 0 if that is not known.
    void fit(milliseconds longest);

    milliseconds ttl() const noexcept { return ttl_; }
    milliseconds grace() const noexcept { return wanted.stop_margin; }
    supervisor_rules rules(std::vector<std::string> command) const;

    redlock::acquire_options wanted;

private:
    void choose(milliseconds ttl);

    const run_options& options_;
    milliseconds ttl_{0};
};

} // namespace cli
