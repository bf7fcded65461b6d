// What the bytes between an engine and one master prove: which commands were said, how each was
// answered, and so until when a lease can be relied on. Reads the stream by itself and believes
// nothing that the engine says.

#pragma once

#include "core/base/validity.hpp"
#include "core/bytes/resp.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

using redlock::time_point;

class evidence {
public:
    explicit evidence(redlock::core::drift_bound drift) : drift_(drift) {}

    /// The connection is new, or gone: what was not answered never will be.
    void restart();
    /// A command was queued.
    void said(const std::vector<std::string>& words, time_point now);
    /// Bytes came back.
    void heard(std::string_view bytes);

    /// Until when the answers to commands with that token can be relied on.
    time_point until(const std::string& token);
    /// The tokens that this connection was sent a command to set, and none to remove after that.
    const std::set<std::string>& set_and_not_removed() const noexcept { return left_; }
    /// Whether this master was ever told to remove the key with that token.
    bool was_removed(const std::string& token) const { return removed_.contains(token); }

private:
    struct command {
        std::vector<std::string> tokens;         // none: it gives no lease
        time_point until = redlock::core::never; // if the answer is positive
    };
    struct status {
        bool ok = false;                // a status, or a script that was executed
        std::set<std::int64_t> refused; // the locks of the call that it names, from 1
    };
    void match();

    redlock::core::drift_bound drift_;
    redlock::core::reply_reader reader_;
    std::deque<command> commands_;
    std::deque<status> statuses_; // of each reply
    std::map<std::string, time_point> until_;
    std::set<std::string> named_; // the tokens in commands on this connection
    std::set<std::string> left_;
    std::set<std::string> removed_;
};

} // namespace fuzz
