#include "support/test.hpp"

#include <redlock/error.hpp>

#include <boost/asio/error.hpp>

namespace error_test { namespace {

using namespace redlock;

constexpr errc all[] = {
    errc::contended,
    errc::no_quorum,
    errc::validity_exhausted,
    errc::wait_timed_out,
    errc::lost,
    errc::released,
    errc::closed,
    errc::not_running,
    errc::invalid_argument,
    errc::stale_token,
    errc::would_deadlock,
    errc::conflicting_change};

TEST_CASE("every error has a message of its own, and most say what to do") {
    std::set<std::string> messages;
    for (const errc one : all) {
        const error_code code = one;
        CHECK(code);
        CHECK(code.category().name() == std::string("redlock"));
        CHECK(code.message().find("unknown") == std::string::npos);
        messages.insert(code.message());
        CHECK(to_string(one) != "unknown");
    }
    CHECK(messages.size() == std::size(all));
    CHECK(to_string(errc::contended) == "contended");
    CHECK(to_string(errc::would_deadlock) == "would_deadlock");
    CHECK(to_string(errc::conflicting_change) == "conflicting_change");
    CHECK(to_string(static_cast<errc>(999)) == "unknown");
    CHECK(error_code(999, redlock::error_category()).message() == "unknown redlock error 999");
    for (const auto& [error, what_to_do] : std::map<errc, std::string>{
             {errc::no_quorum, "diagnostics"},
             {errc::validity_exhausted, "longer ttl"},
             {errc::wait_timed_out, "wait longer"},
             {errc::lost, "stop the work"},
             {errc::not_running, "async_run"},
             {errc::invalid_argument, "with_diagnostics"},
             {errc::would_deadlock, "own thread"},
             {errc::conflicting_change, "finish it first"}}) {
        CHECK(error_code(error).message().find(what_to_do) != std::string::npos);
    }
}

TEST_CASE(
    "contention, outage and shutdown are different conditions, and most errors have no condition") {
    for (const errc one : all) {
        const error_code code = one;
        const bool not_acquired = one == errc::contended || one == errc::validity_exhausted
                                  || one == errc::wait_timed_out;
        const bool unavailable = one == errc::no_quorum;
        const bool stopped = one == errc::closed || one == errc::not_running;
        CAPTURE(code.message());
        CHECK((code == condition::not_acquired) == not_acquired);
        CHECK((code == condition::unavailable) == unavailable);
        CHECK((code == condition::stopped) == stopped);
        CHECK((code == condition::lost) == (one == errc::lost || one == errc::stale_token));
    }
    const error_code aborted = boost::asio::error::operation_aborted;
    const error_code same_value(1, boost::system::generic_category());
    std::set<std::string> messages;
    for (const condition one :
         {condition::not_acquired, condition::unavailable, condition::stopped, condition::lost}) {
        CHECK(aborted != one);
        CHECK(same_value != one);
        CHECK(error_code() != one);
        messages.insert(make_error_condition(one).message());
    }
    CHECK(messages.size() == 4);
}

}} // namespace error_test
