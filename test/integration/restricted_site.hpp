// Masters with a user that an ACL restricts, and a client of that user.
#pragma once

#include "guarded_quorum.hpp"

namespace redlock::test {

using acl_rules = std::vector<std::string>;

inline acl_rules without(acl_rules rules, const std::string& one) {
    std::erase(rules, one);
    return rules;
}

inline acl_rules with(acl_rules rules, const acl_rules& more) {
    rules.insert(rules.end(), more.begin(), more.end());
    return rules;
}

struct restricted_site {
    explicit restricted_site(protocol how) : speaks(how), masters(3) {}

    // Connects anew with these rules and nothing else, to masters without keys.
    void allow(const acl_rules& rules, const std::string& keys = "~redlock:*") {
        me.reset();
        for (master_process& master : masters) {
            const auto line = with({"ACL", "SETUSER", "locker", "reset", "on", ">pw", keys}, rules);
            REQUIRE(master.command(line) == "OK");
            master.command({"FLUSHALL"});
        }
        me.emplace(io, settings(speaks));
        me->until_each([](const auto& one) { return is_down(one) || has_judged(one); });
    }

    // Whether a lock can be taken, extended and released: with a token if the protocol has any.
    bool works() {
        if (me->health().admitted < 3) {
            return false;
        }
        acquire_options options = once_unrenewed(5s);
        options.fencing = speaks == protocol::guarded;
        const acquisition_ptr got = me->acquire("r", options);
        if (got->error) {
            return false;
        }
        const bool extended = !me->extend(got->lock, 10s);
        return me->release(got->lock) == release_result::released && extended;
    }

    void forget_refusals() {
        for (master_process& master : masters) {
            master.command({"ACL", "LOG", "RESET"});
        }
    }
    bool nothing_was_refused() {
        return std::ranges::all_of(masters, [](const master_process& master) {
            return master.command({"ACL", "LOG"}) == "(empty array)";
        });
    }
    void let_health_checks_pass() {
        const auto end = std::chrono::steady_clock::now() + 500ms;
        run_until(io, [&] { return std::chrono::steady_clock::now() >= end; });
    }

    config settings(protocol how) const {
        config result = config_for(masters.urls());
        result.protocol = how;
        result.username = "locker";
        result.password = "pw";
        result.health_check_interval = 200ms;
        return result;
    }

    protocol speaks;
    asio::io_context io;
    quorum_of_masters masters;
    std::optional<client> me;
};

} // namespace redlock::test
