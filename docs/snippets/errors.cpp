// Quoted by docs/errors.md.

#include <redlock/redlock.hpp>

#include <iostream>

namespace snippets::errors {

void decide(const redlock::error_code& error, const redlock::diagnostics& why) {
    if (error == redlock::condition::not_acquired) {
        // others have the lock, or each has a part of the votes: try again later
    } else if (error == redlock::condition::unavailable) {
        // the quorum is down: alert an operator
    }
    std::clog << to_string(why) << '\n';
}

} // namespace snippets::errors
