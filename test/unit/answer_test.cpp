#include "core/answer.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <chrono>
#include <limits>
#include <string_view>

namespace answer_test {

using namespace redlock::core;
using redlock::vote;
using namespace std::chrono_literals;

namespace {

reply integer(std::int64_t value) {
    reply one;
    one.type = reply_type::integer;
    one.integer = value;
    return one;
}

reply text(reply_type type, std::string_view value) {
    reply one;
    one.type = type;
    one.text = value;
    return one;
}

reply error(std::string_view value) {
    return text(reply_type::error, value);
}

struct expectation {
    vote said;
    bool ask_exists = false;
    bool say_otherwise = false;
};

// Removals and extensions are read alike in the plain protocol.
void check(const reply& got, rung how, expectation expected) {
    CAPTURE(got.text, got.integer, static_cast<int>(got.type), static_cast<int>(how));
    for (const answer& meaning : {read_remove(got, how), read_extend(got, how)}) {
        CHECK(meaning.ask_exists == expected.ask_exists);
        CHECK(meaning.say_otherwise == expected.say_otherwise);
        if (!expected.ask_exists && !expected.say_otherwise) {
            CHECK(meaning.said == expected.said);
        }
    }
}

vote said_to_set(const reply& got) {
    return read_acquire(got, rung::native).said;
}

// What a script of the guarded protocol answers.
class three {
public:
    three(std::int64_t status, std::int64_t value, std::int64_t clock)
        : parts_{integer(status), integer(value), integer(clock)} {}
    operator reply() const { // NOLINT(google-explicit-constructor)
        reply one;
        one.type = reply_type::array;
        one.integer = 3;
        one.elements = parts_;
        return one;
    }

private:
    std::array<reply, 3> parts_;
};

} // namespace

TEST_CASE("only OK to a SET is a grant, and only nil says that somebody has it") {
    CHECK(said_to_set(text(reply_type::status, "OK")) == vote::granted);
    CHECK(said_to_set(text(reply_type::nil, "")) == vote::held);
    CHECK(said_to_set(text(reply_type::status, "QUEUED")) == vote::error);
    CHECK(said_to_set(text(reply_type::status, "")) == vote::error);
    CHECK(said_to_set(text(reply_type::string, "OK")) == vote::error);
    CHECK(said_to_set(integer(1)) == vote::error);
    CHECK(said_to_set(integer(0)) == vote::error);
    CHECK(said_to_set(text(reply_type::array, "")) == vote::error);
    for (const auto* why :
         {"OK",
          "LOADING Redis is loading",
          "READONLY You can't write",
          "OOM",
          "NOAUTH Authentication required.",
          "MISCONF Redis is configured"}) {
        CHECK(said_to_set(error(why)) == vote::error);
    }
}

TEST_CASE("the scripts answer one, nought or minus one") {
    for (const rung how : {rung::evalsha, rung::eval}) {
        check(integer(1), how, {vote::granted});
        check(integer(0), how, {vote::owned_by_other});
        check(integer(-1), how, {vote::absent});
        CHECK(read_extend(integer(2), how).said == vote::error);
        CHECK(read_remove(integer(2), how).said == vote::granted);
        CHECK(read_remove(integer(2), how).unpublished);
        CHECK(!read_remove(integer(1), how).unpublished);
        check(integer(3), how, {vote::error});
        check(integer(-2), how, {vote::error});
        check(text(reply_type::status, "OK"), how, {vote::error});
        check(text(reply_type::nil, ""), how, {vote::error});
        check(text(reply_type::string, "1"), how, {vote::error});
        check(text(reply_type::array, ""), how, {vote::error});
    }
}

TEST_CASE("a native command that did nothing is followed by EXISTS") {
    check(integer(1), rung::native, {vote::granted});
    check(text(reply_type::status, "OK"), rung::native, {vote::granted});
    check(integer(0), rung::native, {vote::error, true});
    check(text(reply_type::nil, ""), rung::native, {vote::error, true});
    CHECK(vote_on_exists(integer(0)) == vote::absent);
    CHECK(vote_on_exists(integer(1)) == vote::owned_by_other);
    CHECK(vote_on_exists(error("NOPERM")) == vote::error);
    CHECK(vote_on_exists(text(reply_type::nil, "")) == vote::error);
}

TEST_CASE("what a server will not have said this way is said in another, but EVAL is the last") {
    for (const auto* why :
         {"NOSCRIPT No matching script",
          "NOPERM no permissions",
          "ERR unknown command 'DELEX'",
          "ERR syntax error"}) {
        check(error(why), rung::native, {vote::error, false, true});
        check(error(why), rung::evalsha, {vote::error, false, true});
        check(error(why), rung::eval, {vote::error});
    }
}

TEST_CASE("an error is a vote of its own, and a key of another type is somebody else's") {
    for (const rung how : {rung::native, rung::evalsha, rung::eval}) {
        check(error("READONLY You can't write against a read only replica."), how, {vote::error});
        check(error("LOADING"), how, {vote::error});
        check(error("OOM command not allowed"), how, {vote::error});
        check(error("WRONGTYPE Operation against a key"), how, {vote::owned_by_other});
        check(error("ERR Error running script: WRONGTYPE Operation"), how, {vote::owned_by_other});
        check(error(""), how, {vote::error});
    }
}

TEST_CASE("errors that say that a server cannot serve make it introduce itself again") {
    CHECK(means_ineligible("READONLY You can't write against a read only replica."));
    CHECK(means_ineligible("LOADING Redis is loading the dataset in memory"));
    CHECK(means_ineligible("NOAUTH Authentication required."));
    CHECK(means_ineligible("MASTERDOWN Link with MASTER is down"));
    CHECK(!means_ineligible("OOM command not allowed when used memory > 'maxmemory'."));
    CHECK(!means_ineligible("ERR READONLY"));
    CHECK(means_ineligible(
        "ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write"));
    CHECK(!means_ineligible(""));
}

TEST_CASE("a guarded acquire is granted, busy, late or quarantined") {
    for (const rung how : {rung::evalsha, rung::eval}) {
        const three granted(1, 17, 1'000);
        answer got = read_acquire(granted, how);
        CHECK(got.said == vote::granted);
        CHECK(got.counter == 17);
        CHECK(got.server_us == 1'000);
        const three busy(0, 250, 0);
        got = read_acquire(busy, how);
        CHECK(got.said == vote::held);
        CHECK(got.left == 250ms);
        CHECK(got.server_us == 0);
        const three without_expiry(0, -1, 0);
        got = read_acquire(without_expiry, how);
        CHECK(got.said == vote::held);
        CHECK(!got.left);
        const three late(-1, 0, 1'000);
        got = read_acquire(late, how);
        CHECK(got.said == vote::timed_out);
        CHECK(got.late);
        const three quarantined(-2, 5'000, 1'000);
        got = read_acquire(quarantined, how);
        CHECK(got.said == vote::quarantined);
        CHECK(!got.forgot);
        CHECK(got.quarantine == 5'000us);
        CHECK(got.quarantine_ends_us == 6'000);
        const three unknown(-4, 7'000, 1'000);
        got = read_acquire(unknown, how);
        CHECK(got.said == vote::quarantined);
        CHECK(got.forgot);
        CHECK(got.quarantine == 7'000us);
    }
}

TEST_CASE("a raise counts only at exactly the counter that was asked for") {
    CHECK(read_raise(three(1, 17, 0), rung::evalsha).said == vote::granted);
    CHECK(read_raise(three(0, 18, 0), rung::evalsha).said == vote::held);
    CHECK(read_raise(three(0, 18, 0), rung::evalsha).counter == 18);
    CHECK(read_raise(three(0, 0, 0), rung::evalsha).said == vote::owned_by_other);
}

TEST_CASE("a guarded extension extends, heals, or says why not") {
    const auto said = [](std::int64_t status, std::int64_t value = 0) {
        const three got(status, value, 1'000);
        return read_extend(got, rung::evalsha);
    };
    CHECK(said(1).said == vote::granted);
    CHECK(!said(1).healed);
    CHECK(!said(1).unpublished);
    CHECK(said(1, 1).unpublished); // it became a reader, and may not PUBLISH that
    CHECK(said(2).said == vote::granted);
    CHECK(said(2).healed);
    CHECK(said(0, 70).said == vote::owned_by_other);
    CHECK(said(0, 70).left == 70ms);
    CHECK(said(0, 0).left == 0ms);
    CHECK(!said(0, -1).left);
    CHECK(said(-1).said == vote::timed_out);
    CHECK(said(-1).late);
    CHECK(said(-2).said == vote::absent);
    CHECK(said(-2).forgot);
    CHECK(said(-3).said == vote::absent);
    CHECK(!said(-3).forgot);
}

TEST_CASE("a guarded removal removes, or says whose it is") {
    CHECK(read_remove(three(1, 0, 5), rung::evalsha).said == vote::granted);
    CHECK(read_remove(three(1, 0, 5), rung::evalsha).server_us == 5);
    CHECK(read_remove(three(0, 0, 5), rung::evalsha).said == vote::owned_by_other);
    CHECK(read_remove(three(-1, 0, 5), rung::evalsha).said == vote::absent);
}

TEST_CASE("a handshake says since when a master remembers") {
    const auto got = read_handshake(three(1, 30'001'000, 1'000));
    REQUIRE(got);
    CHECK(got->quarantine == 30s);
    CHECK(got->ends_us == 30'001'000);
    CHECK(got->readable);
    const auto over = read_handshake(three(0, 1'000'000, 6'000'000));
    REQUIRE(over);
    CHECK(over->quarantine == 0s);
    CHECK(over->ends_us == 1'000'000);
    const auto unreadable = read_handshake(three(-1, 0, 1'000));
    REQUIRE(unreadable);
    CHECK(!unreadable->readable);
    CHECK(got->server_us == 1'000);
    CHECK(!read_handshake(integer(1)));
    CHECK(!read_handshake(error("NOPERM")));
}

TEST_CASE("the server's clock is read from TIME") {
    const std::array<reply, 2> parts{
        text(reply_type::string, "1700000000"), text(reply_type::string, "000123")};
    reply time;
    time.type = reply_type::array;
    time.elements = parts;
    CHECK(read_time(time) == 1'700'000'000'000'123);
    CHECK(!read_time(error("NOPERM")));
    for (const auto* bad : {"", "-1", "1x", "99999999999999", "99999999999999999999"}) {
        const std::array<reply, 2> broken{text(reply_type::string, bad), parts[1]};
        time.elements = broken;
        CHECK(!read_time(time));
    }
}

TEST_CASE("an answer that no script gives is an error, whatever its numbers") {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    constexpr auto least = std::numeric_limits<std::int64_t>::min();
    for (const std::int64_t status : {std::int64_t{3}, std::int64_t{-5}, most, least}) {
        CHECK(read_acquire(three(status, 0, 0), rung::eval).said == vote::error);
        CHECK(read_raise(three(status, 0, 0), rung::eval).said == vote::error);
        CHECK(read_remove(three(status, 0, 0), rung::eval).said == vote::error);
        CHECK(read_extend(three(status, 0, 0), rung::eval).said == vote::error);
    }
    CHECK(read_acquire(three(1, -1, 0), rung::eval).said == vote::error);
    CHECK(read_acquire(integer(1), rung::eval).said == vote::error);
    CHECK(read_acquire(text(reply_type::status, "OK"), rung::eval).said == vote::error);
    CHECK(read_raise(three(1, -1, 0), rung::eval).said == vote::error);
    // Beyond 2^53 a script cannot count: no token that could be given twice.
    CHECK(read_acquire(three(1, most, 0), rung::eval).said == vote::error);
    CHECK(read_acquire(three(1, (std::int64_t{1} << 53) - 2, 0), rung::eval).said == vote::granted);
    CHECK(read_acquire(three(1, (std::int64_t{1} << 53) - 1, 0), rung::eval).said == vote::error);
    CHECK(read_acquire(three(1, 1, most), rung::eval).server_us <= std::int64_t{1} << 53);
    // Broken figures must not overflow where they are added to a moment.
    CHECK(read_acquire(three(-2, most, most), rung::eval).quarantine <= std::chrono::years(1));
    CHECK(read_acquire(three(-2, least, least), rung::eval).quarantine == 0us);
    CHECK(read_acquire(three(0, most, 0), rung::eval).left <= std::chrono::years(1));
    CHECK(read_acquire(three(1, 1, least), rung::eval).server_us == 0);
}

TEST_CASE("what an answer does not tell is nought") {
    CHECK(read_acquire(three(0, 500, 0), rung::evalsha).counter == 0);
    CHECK(read_acquire(three(0, 500, 0), rung::evalsha).server_us == 0);
}

} // namespace answer_test
