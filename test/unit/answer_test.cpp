#include "core/bytes/answer.hpp"
#include "support/test.hpp"

#include <limits>

namespace answer_test { namespace {

using namespace redlock::core;
using redlock::vote;

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
    bool use_eval = false;
};

// Of a removal and an extension.
void check(const reply& got, command_variant how, expectation expected) {
    CAPTURE(got.text, got.integer, static_cast<int>(got.type), static_cast<int>(how));
    for (const answer& meaning : {read_remove(got, how), read_extend(got, how)}) {
        CHECK(meaning.use_eval == expected.use_eval);
        if (!expected.use_eval) {
            CHECK(meaning.said == expected.said);
        }
    }
}

vote said_to_set(const reply& got) {
    return read_acquire(got, command_variant::native).said;
}

// An array as a reply: what a script of the guarded protocol answers.
template <std::size_t Size>
class array_reply {
public:
    explicit array_reply(std::array<reply, Size> parts) : parts_(parts) {}
    operator reply() const { // NOLINT(google-explicit-constructor)
        reply one;
        one.type = reply_type::array;
        one.integer = Size;
        one.elements = parts_;
        return one;
    }

private:
    std::array<reply, Size> parts_;
};

array_reply<3> three(std::int64_t status, std::int64_t value, std::int64_t clock) {
    return array_reply<3>({integer(status), integer(value), integer(clock)});
}

// What a handshake answers.
array_reply<4> with_record(std::int64_t status, std::int64_t value, std::int64_t clock) {
    return array_reply<4>(
        {integer(status), integer(value), integer(clock), text(reply_type::string, "3 r")});
}

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

TEST_CASE("what is not a reply of a script is an error") {
    for (const command_variant how : {command_variant::evalsha, command_variant::eval}) {
        for (const std::int64_t value : {-1, 0, 1, 2}) {
            check(integer(value), how, {vote::error});
        }
        check(text(reply_type::status, "OK"), how, {vote::error});
        check(text(reply_type::nil, ""), how, {vote::error});
        check(text(reply_type::string, "1"), how, {vote::error});
        check(text(reply_type::array, ""), how, {vote::error});
    }
}

TEST_CASE("what a server will not have said this way is said in another, but EVAL is the last") {
    for (const auto* why :
         {"NOSCRIPT No matching script",
          "NOPERM no permissions",
          "ERR unknown command 'EVALSHA'"}) {
        check(error(why), command_variant::evalsha, {vote::error, true});
        check(error(why), command_variant::eval, {vote::error});
    }
}

TEST_CASE("an error is a vote of its own, and a key of another type is somebody else's") {
    for (const command_variant how : {command_variant::evalsha, command_variant::eval}) {
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
    for (const command_variant how : {command_variant::evalsha, command_variant::eval}) {
        const auto read = [&](std::int64_t status, std::int64_t value, std::int64_t clock) {
            const auto got = three(status, value, clock);
            return read_acquire(got, how);
        };
        const answer granted = read(1, 17, 1'000);
        CHECK(granted.said == vote::granted);
        CHECK(granted.counter == 17);
        CHECK(granted.server_us == 1'000);
        const answer busy = read(0, 250, 0);
        CHECK(busy.said == vote::held);
        CHECK(busy.left == 250ms);
        CHECK(busy.server_us == 0);
        CHECK(busy.counter == 0);
        CHECK(read(0, -1, 0).said == vote::held);
        CHECK(!read(0, -1, 0).left);
        CHECK(read(-1, 0, 1'000).said == vote::timed_out);
        CHECK(read(-1, 0, 1'000).late);
        const answer quarantined = read(-2, 5'000, 1'000);
        CHECK(quarantined.said == vote::quarantined);
        CHECK(!quarantined.forgot);
        CHECK(quarantined.quarantine == 5'000us);
        CHECK(quarantined.quarantine_ends_us == 6'000);
        const answer unknown = read(-4, 7'000, 1'000);
        CHECK(unknown.said == vote::quarantined);
        CHECK(unknown.forgot);
        CHECK(unknown.quarantine == 7'000us);
    }
}

TEST_CASE("a raise counts only at exactly the counter that was asked for") {
    CHECK(read_raise(three(1, 17, 0), command_variant::evalsha).said == vote::granted);
    CHECK(read_raise(three(0, 18, 0), command_variant::evalsha).said == vote::held);
    CHECK(read_raise(three(0, 18, 0), command_variant::evalsha).counter == 18);
    CHECK(read_raise(three(0, 0, 0), command_variant::evalsha).said == vote::owned_by_other);
}

TEST_CASE("a guarded extension extends, heals, or says why not") {
    const auto said = [](std::int64_t status, std::int64_t value = 0) {
        const auto got = three(status, value, 1'000);
        return read_extend(got, command_variant::evalsha);
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
    CHECK(read_remove(three(1, 0, 5), command_variant::evalsha).said == vote::granted);
    CHECK(read_remove(three(1, 0, 5), command_variant::evalsha).server_us == 5);
    CHECK(read_remove(three(0, 0, 5), command_variant::evalsha).said == vote::owned_by_other);
    CHECK(read_remove(three(-1, 0, 5), command_variant::evalsha).said == vote::absent);
}

TEST_CASE("a handshake returns since when a master has lost no data") {
    const auto got = read_handshake(with_record(1, 30'001'000, 1'000));
    REQUIRE(got);
    CHECK(got->quarantine == 30s);
    CHECK(got->ends_us == 30'001'000);
    CHECK(got->readable);
    CHECK(got->record == "3 r");
    CHECK(!read_handshake(three(1, 30'001'000, 1'000))); // without a record
    CHECK(!read_handshake(with_record(-1, 0, 1'000)));
    const auto over = read_handshake(with_record(0, 1'000'000, 6'000'000));
    REQUIRE(over);
    CHECK(over->quarantine == 0s);
    CHECK(over->ends_us == 1'000'000);
    // The quarantine of a damaged record: it does not fit into the reply.
    const auto endless =
        read_handshake(with_record(0, std::numeric_limits<std::int64_t>::min(), 1));
    REQUIRE(endless);
    CHECK(endless->quarantine > std::chrono::hours(24));
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
        CHECK(read_acquire(three(status, 0, 0), command_variant::eval).said == vote::error);
        CHECK(read_raise(three(status, 0, 0), command_variant::eval).said == vote::error);
        CHECK(read_remove(three(status, 0, 0), command_variant::eval).said == vote::error);
        CHECK(read_extend(three(status, 0, 0), command_variant::eval).said == vote::error);
    }
    CHECK(read_acquire(three(1, -1, 0), command_variant::eval).said == vote::error);
    CHECK(read_acquire(integer(1), command_variant::eval).said == vote::error);
    CHECK(read_acquire(text(reply_type::status, "OK"), command_variant::eval).said == vote::error);
    CHECK(read_raise(three(1, -1, 0), command_variant::eval).said == vote::error);
    // Beyond 2^53 a script cannot count: no token that could be given twice.
    CHECK(read_acquire(three(1, most, 0), command_variant::eval).said == vote::error);
    CHECK(
        read_acquire(three(1, (std::int64_t{1} << 53) - 2, 0), command_variant::eval).said
        == vote::granted);
    CHECK(
        read_acquire(three(1, (std::int64_t{1} << 53) - 1, 0), command_variant::eval).said
        == vote::error);
    CHECK(
        read_acquire(three(1, 1, most), command_variant::eval).server_us <= std::int64_t{1} << 53);
    // Broken figures must not overflow where they are added to a moment.
    CHECK(
        read_acquire(three(-2, most, most), command_variant::eval).quarantine
        <= std::chrono::years(1));
    CHECK(read_acquire(three(-2, least, least), command_variant::eval).quarantine == 0us);
    CHECK(read_acquire(three(0, most, 0), command_variant::eval).left <= std::chrono::years(1));
    CHECK(read_acquire(three(1, 1, least), command_variant::eval).server_us == 0);
}

// --- Calls for several locks ---------------------------------------------------------------------

constexpr command_kind acquires = command_kind::acquire;
constexpr command_kind removes = command_kind::remove;
constexpr command_kind extends = command_kind::extend;

struct one_lock {
    answer means;
    std::string error;
};

// The reply to one call, from the bytes on.
struct several {
    explicit several(
        std::string_view reply_in_words,
        command_kind kind,
        std::size_t locks,
        bool has_counters = false,
        command_variant how = command_variant::evalsha) {
        const std::string bytes = in_bytes(reply_in_words);
        reply_reader reader;
        REQUIRE(reader.feed(bytes));
        const reply* const got = reader.next();
        REQUIRE(got != nullptr);
        frame_answers all(*got, kind, how, has_counters, locks);
        call = all.call();
        executed = all.executed();
        error = all.error();
        for (std::size_t i = 0; i < locks; ++i) {
            each.push_back(
                executed ? one_lock{all.next(), std::string(all.error())}
                         : one_lock{all.call(), std::string(all.error())});
        }
    }

    // "1 0 2 'ERR why' [1 2] nil": an array; "-ERR why": an error; a number by itself.
    static std::string in_bytes(std::string_view words) {
        if (words.starts_with('-') && words.find_first_of("0123456789") != 1) {
            return std::string(words) + "\r\n";
        }
        std::size_t elements = 0;
        std::string body;
        while (!words.empty()) {
            if (words.front() == ' ') {
                words.remove_prefix(1);
                continue;
            }
            const char last = words.front() == '\'' ? '\'' : words.front() == '[' ? ']' : ' ';
            const std::size_t first = last == ' ' ? 0 : 1;
            const std::size_t end = std::min(words.find(last, first), words.size());
            const std::string word(words.substr(first, end - first));
            words.remove_prefix(std::min(end + first, words.size()));
            ++elements;
            if (last == ']') {
                body += in_bytes(word);
            } else if (last == '\'') {
                body += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
            } else {
                body += word == "nil" ? "$-1\r\n" : ":" + word + "\r\n";
            }
        }
        return "*" + std::to_string(elements) + "\r\n" + body;
    }

    std::vector<vote> votes() const {
        std::vector<vote> all;
        for (const one_lock& one : each) {
            all.push_back(one.means.said);
        }
        return all;
    }

    answer call;
    bool executed = false;
    std::string error;
    std::vector<one_lock> each;
};

// A vote for each letter: granted, held, owned by other, absent, error, timed out, quarantined.
std::vector<vote> votes(std::string_view letters) {
    std::vector<vote> all;
    for (const char letter : letters) {
        all.push_back(
            letter == '+'   ? vote::granted
            : letter == 'h' ? vote::held
            : letter == 'o' ? vote::owned_by_other
            : letter == 'a' ? vote::absent
            : letter == 't' ? vote::timed_out
            : letter == 'q' ? vote::quarantined
                            : vote::error);
    }
    return all;
}

TEST_CASE("of several locks that a call acquires, those are held that it excepts") {
    const several all("1 1000", acquires, 3);
    CHECK(all.executed);
    CHECK(all.call.server_us == 1'000);
    CHECK(all.votes() == votes("+++"));
    CHECK(all.each[2].means.counter == 0);
    CHECK(all.each[0].means.server_us == 0); // it is the call's
    CHECK(!all.call.late);
    CHECK(!all.call.use_eval);

    const several mixed(
        "1 1000 2 250 3 -1 5 'WRONGTYPE Operation against a key' 6 'OOM command not allowed'",
        acquires,
        6);
    CHECK(mixed.executed);
    CHECK(mixed.votes() == votes("+hh+oe"));
    CHECK(mixed.each[1].means.left == 250ms);
    CHECK(!mixed.each[2].means.left);
    CHECK(mixed.each[4].error == "WRONGTYPE Operation against a key");
    CHECK(mixed.each[5].error == "OOM command not allowed");
    CHECK(mixed.each[3].error.empty());
    CHECK(mixed.error.empty());
    CHECK(several("1 1000 1 0", acquires, 2).each[0].means.left == 0ms);
}

TEST_CASE("with fencing a call says the counter of each lock that it acquires") {
    const several all("1 1000 17 -2 -252 -1 'WRONGTYPE Operation' 0", acquires, 6, true);
    CHECK(all.executed);
    CHECK(all.call.server_us == 1'000);
    CHECK(all.votes() == votes("+hhho+"));
    CHECK(all.each[0].means.counter == 17);
    CHECK(all.each[1].means.left == 0ms);
    CHECK(all.each[2].means.left == 250ms);
    CHECK(!all.each[3].means.left);
    CHECK(all.each[4].error == "WRONGTYPE Operation");
    CHECK(all.each[5].means.counter == 0);
    CHECK(all.each[5].error.empty());
    // Beyond 2^53 a script cannot count: no token that could be given twice.
    const several large("1 1000 9007199254740990 9007199254740991", acquires, 2, true);
    CHECK(large.votes() == votes("+e"));
    const several broken("1 1000 9223372036854775807 -9223372036854775808", acquires, 2, true);
    CHECK(broken.votes() == votes("eh"));
    CHECK(broken.each[1].means.left <= std::chrono::years(1));
}

TEST_CASE("of several locks that a call extends, it says which are missing or another's") {
    const several all(
        "1 1000 2 70 3 -1 4 -2 5 -3 7 'WRONGTYPE Operation' 8 'READONLY replica'", extends, 8);
    CHECK(all.executed);
    CHECK(all.call.server_us == 1'000);
    CHECK(all.votes() == votes("+ooaa+oe"));
    CHECK(all.each[1].means.left == 70ms);
    CHECK(!all.each[2].means.left);
    CHECK(all.each[3].means.forgot);
    CHECK(!all.each[4].means.forgot);
    CHECK(all.each[7].error == "READONLY replica");
    // Exceptions only, also with fencing.
    CHECK(several("1 1000", extends, 2, true).votes() == votes("++"));
    CHECK(several("1 1000 2 -3", extends, 2, true).votes() == votes("+a"));
}

TEST_CASE("of several locks that a call removes, it says which were not there, or not told of") {
    const several all("1 0 1 0 2 -1 3 -2 4 3 6 'ERR why' 7 -3 8 1", removes, 8);
    CHECK(all.executed);
    CHECK(all.call.server_us == 0);
    CHECK(all.votes() == votes("oa+++eee"));
    for (std::size_t i = 0; i < 8; ++i) {
        CHECK(all.each[i].means.unpublished == (i == 2));
        CHECK(all.each[i].error == (i == 5 ? "ERR why" : ""));
    }
    CHECK(several("1 0", removes, 2, true).votes() == votes("++"));
}

TEST_CASE("a call for several locks that a master did not execute is refused for each") {
    for (const bool fenced : {false, true}) {
        const several late("-1 0 1000", acquires, 2, fenced);
        CHECK(!late.executed);
        CHECK(late.call.late);
        CHECK(late.call.server_us == 1'000);
        CHECK(late.votes() == votes("tt"));
        const several quarantined("-2 5000 1000", acquires, 2, fenced);
        CHECK(!quarantined.executed);
        CHECK(quarantined.votes() == votes("qq"));
        CHECK(!quarantined.call.forgot);
        CHECK(quarantined.call.quarantine == 5'000us);
        CHECK(quarantined.call.quarantine_ends_us == 6'000);
        const several unknown("-4 7000 1000", acquires, 2, fenced);
        CHECK(!unknown.executed);
        CHECK(unknown.votes() == votes("qq"));
        CHECK(unknown.call.forgot);
        const several late_extension("-1 0 1000", extends, 2, fenced);
        CHECK(!late_extension.executed);
        CHECK(late_extension.call.late);
        CHECK(late_extension.votes() == votes("tt"));
        // A script for one lock could say these, and one for several never does.
        for (const char* const other : {"0 250 1000", "2 0 1000", "3 0 1000", "-5 0 1000"}) {
            for (const command_kind kind : {acquires, extends, removes}) {
                const several strange(other, kind, 2, fenced);
                CHECK(!strange.executed);
                CHECK(strange.votes() == votes("ee"));
            }
        }
        for (const char* const other : {"-2 0 1000", "-3 0 1000"}) {
            CHECK(several(other, extends, 2, fenced).votes() == votes("ee"));
        }
        CHECK(several("-1 0 1000", removes, 2, fenced).votes() == votes("ee"));
    }
}

TEST_CASE("a reply for several locks that no script gives is an error for each of them") {
    for (const command_kind kind : {acquires, extends, removes}) {
        for (const char* const bad :
             {"1 0 0 5",  // counted from one
              "1 0 -1 5", //
              "1 0 4 5",  // there are three
              "1 0 9223372036854775807 5",
              "1 0 2 5 1 5",         // descending
              "1 0 2 5 2 5",         //
              "1 0 1 5 2 5 3 5 4 5", // more than there are
              "1 0 2",               // without a status
              "1 0 1 5 3",           //
              "1 0 'one' 5",         // a text for a number
              "1 0 nil 5",           //
              "1 0 1 5 '2' 5",       //
              "1 0 1 [5]",           // nested
              "1 0 1 [2 5]",         //
              "1 0 [1 5]",           //
              "1 0 1 5 2 ['ERR why' 5]",
              "1 0 1 []",
              "1 [0]",
              "[1 0]",
              "[0]",
              "1",
              "'1' 0",
              "1 '0'",
              "1 nil",
              ""}) {
            CAPTURE(bad, static_cast<int>(kind));
            const several all(bad, kind, 3);
            CHECK(!all.executed);
            CHECK(all.votes() == votes("eee"));
        }
    }
    // A value for each, with fencing.
    for (const char* const bad :
         {"1 1000",
          "1 1000 17 18",
          "1 1000 17 18 19 20",
          "1 1000 1 17 2 18",
          "1 1000 17 [18]",
          "1 1000 [17 18]",
          "1 1000 17 [] 18",
          "1 1000 17 18 []"}) {
        CAPTURE(bad);
        const several all(bad, acquires, 3, true);
        CHECK(!all.executed);
        CHECK(all.votes() == votes("eee"));
    }
    CHECK(several("1 1000 17 nil 19", acquires, 3, true).votes() == votes("+e+"));
    for (const reply& other :
         {integer(1), text(reply_type::status, "OK"), text(reply_type::nil, "")}) {
        for (const command_kind kind : {acquires, extends, removes}) {
            const frame_answers all(other, kind, command_variant::eval, false, 2);
            CHECK(!all.executed());
            CHECK(all.call().said == vote::error);
            CHECK(all.error().empty());
        }
    }
    // The clock is of use only within what a script can count.
    CHECK(several("1 -5", acquires, 1).call.server_us == 0);
    CHECK(several("1 9223372036854775807", acquires, 1).call.server_us <= std::int64_t{1} << 53);
}

TEST_CASE("an error of a call for several locks is each lock's") {
    for (const command_kind kind : {acquires, extends, removes}) {
        for (const bool fenced : {false, true}) {
            const several all("-LOADING Redis is loading", kind, 2, fenced);
            CHECK(!all.executed);
            CHECK(all.votes() == votes("ee"));
            CHECK(all.error == "LOADING Redis is loading");
            CHECK(all.each[1].error == "LOADING Redis is loading");
            CHECK(!all.call.use_eval);
            // A key of another type concerns one lock, and is said of that.
            const several wrong_type("-WRONGTYPE Operation against a key", kind, 2, fenced);
            CHECK(wrong_type.votes() == votes("ee"));
        }
    }
}

TEST_CASE("a call for several locks that is refused is said in another way, or for one at a time") {
    const auto refused = [](std::string_view error, std::size_t locks, command_variant how) {
        const several all(error, acquires, locks, false, how);
        CHECK(!all.executed);
        CHECK(all.call.said == vote::error);
        return all.call;
    };
    const std::string noperm = "-NOPERM No permissions to access a key";
    const std::string noscript = "-NOSCRIPT No matching script. Please use EVAL.";
    // The user may have no right to one of the keys.
    for (const command_variant how : {command_variant::evalsha, command_variant::eval}) {
        CHECK(refused(noperm, 2, how).use_eval);
        CHECK(refused(noperm, 2, how).for_one);
    }
    CHECK(refused(noperm, 1, command_variant::evalsha).use_eval);
    CHECK(!refused(noperm, 1, command_variant::evalsha).for_one);
    CHECK(!refused(noscript, 2, command_variant::evalsha).for_one);
    CHECK(!refused(noperm, 1, command_variant::eval).use_eval); // EVAL is the last
    for (const std::size_t locks : {1U, 2U}) {
        CHECK(refused(noscript, locks, command_variant::evalsha).use_eval);
        CHECK(!refused(noscript, locks, command_variant::eval).use_eval);
        CHECK(!refused("-OOM command not allowed", locks, command_variant::evalsha).use_eval);
    }
    // Within a script nothing can be said otherwise.
    const several of_one("1 1000 1 'NOPERM User may not access this key'", acquires, 2);
    CHECK(of_one.votes() == votes("e+"));
    CHECK(!of_one.each[0].means.use_eval);
}

}} // namespace answer_test
