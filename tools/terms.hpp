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
    /// Throws `failure` for options that do not fit each other.
    terms(run_options& options, const redlock::config& configuration);

    /// The quorum may allow less than the usual ttl: 0 if that is not known.
    void fit(milliseconds longest);

    milliseconds ttl() const noexcept { return options_.lock.ttl; }
    milliseconds grace() const noexcept { return options_.grace; }
    supervisor_rules rules(std::vector<std::string> command) const;

    redlock::acquire_options wanted;

private:
    run_options& options_;
    bool usual_ttl_;
    bool usual_grace_;
};

} // namespace cli
