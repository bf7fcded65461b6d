// What each reply of a master means, in words: a line for each reply.

#include "core/bytes/answer.hpp"
#include "support/test.hpp"

#include <sstream>

namespace answer_test { namespace {

using namespace redlock::core;
using enum command_variant;

constexpr command_kind acquires = command_kind::acquire;
constexpr command_kind removes = command_kind::remove;
constexpr command_kind extends = command_kind::extend;

template <command_kind kind>
answer read(const reply& got, command_variant how) noexcept {
    return read_answer(kind, got, how);
}
constexpr auto* read_acquire = read<command_kind::acquire>;
constexpr auto* read_raise = read<command_kind::raise>;
constexpr auto* read_remove = read<command_kind::remove>;
constexpr auto* read_extend = read<command_kind::extend>;

// "1 0 'ERR why' [1 2] nil": an array. A word that begins with its type is a reply by itself.
std::string in_bytes(std::string_view words) {
    const bool negative = words.starts_with('-') && words.find_first_of("0123456789") == 1;
    if (!negative && !words.empty()
        && std::string_view("+-:$*").find(words.front()) != std::string_view::npos) {
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

// The result is that of `read`, to which the reply belongs only during the call.
template <typename F>
auto with_reply(std::string_view words, F read) {
    const std::string bytes = in_bytes(words);
    reply_reader reader;
    REQUIRE(reader.feed(bytes));
    const reply* const got = reader.next();
    REQUIRE(got != nullptr);
    return read(*got);
}

std::string in_words(const answer& one) {
    std::ostringstream out;
    out << to_string(one.said);
    const auto flag = [&](bool set, const char* name) { out << (set ? name : ""); };
    const auto number = [&](std::int64_t value, const char* name) {
        if (value != 0) {
            out << name << value;
        }
    };
    flag(one.use_eval, " use_eval");
    flag(one.for_one, " for_one");
    flag(one.late, " late");
    flag(one.healed, " healed");
    flag(one.forgot, " forgot");
    flag(one.unpublished, " unpublished");
    if (one.left) {
        out << " left " << one.left->count();
    }
    number(one.quarantine.count(), " for ");
    number(static_cast<std::int64_t>(one.counter), " counter ");
    number(one.quarantine_ends_us, " until ");
    number(one.server_us, " at ");
    return out.str();
}

TEST_CASE("the reply to a command for one lock is a vote, with what came with it") {
    using reader = answer (*)(const reply&, command_variant) noexcept;
    const struct {
        reader read;
        const char* reply;
        const char* means;
    } rows[] = {
        {read_acquire, "1 17 1000", "granted counter 17 at 1000"},
        {read_acquire, "0 250 0", "held left 250"},
        {read_acquire, "0 -1 0", "held"},
        {read_acquire, "-1 0 1000", "timed_out late at 1000"},
        {read_acquire, "-2 5000 1000", "quarantined for 5000 until 6000 at 1000"},
        {read_acquire, "-4 7000 1000", "quarantined forgot for 7000 until 8000 at 1000"},
        {read_raise, "1 17 0", "granted counter 17"}, // at exactly the counter that was asked for
        {read_raise, "0 18 0", "held counter 18"},
        {read_raise, "0 0 0", "owned_by_other"},
        {read_extend, "1 0 1000", "granted at 1000"},
        {read_extend, "1 1 1000", "granted unpublished at 1000"}, // it became a reader
        {read_extend, "2 0 1000", "granted healed at 1000"},
        {read_extend, "0 70 1000", "owned_by_other left 70 at 1000"},
        {read_extend, "0 0 1000", "owned_by_other left 0 at 1000"},
        {read_extend, "0 -1 1000", "owned_by_other at 1000"},
        {read_extend, "-1 0 1000", "timed_out late at 1000"},
        {read_extend, "-2 0 1000", "absent forgot at 1000"},
        {read_extend, "-3 0 1000", "absent at 1000"},
        {read_remove, "1 0 5", "granted at 5"},
        {read_remove, "1 1 5", "granted unpublished at 5"},
        {read_remove, "0 0 5", "owned_by_other at 5"},
        {read_remove, "-1 0 5", "absent at 5"},
        // Beyond 2^53 a script cannot count: no token that could be given twice.
        {read_acquire, "1 9007199254740990 0", "granted counter 9007199254740990"},
        {read_acquire, "1 9007199254740991 0", "error"},
        {read_acquire, "1 9223372036854775807 0", "error"},
        {read_acquire, "1 -1 0", "error"},
        {read_raise, "1 -1 0", "error"},
        {read_acquire, "1 1 9223372036854775807", "granted counter 1 at 9007199254740991"},
        {read_acquire, "1 1 -9223372036854775808", "granted counter 1"},
        // Invalid figures must not overflow where they are added to a moment: a year at most.
        {read_acquire,
         "-2 9223372036854775807 9223372036854775807",
         "quarantined for 31556952000000 until 9038756206740991 at 9007199254740991"},
        {read_acquire, "-2 -9223372036854775808 -9223372036854775808", "quarantined"},
        {read_acquire, "0 9223372036854775807 0", "held left 31556952000"},
    };
    for (const auto& [read, reply, means] : rows) {
        for (const command_variant how : {evalsha, eval}) {
            CAPTURE(reply);
            CHECK(
                with_reply(
                    reply, [how, read = read](auto& got) { return in_words(read(got, how)); })
                == means);
        }
    }
    for (const reader read : {read_acquire, read_raise, read_extend, read_remove}) {
        for (const char* const invalid :
             {"3 0 0",
              "-5 0 0",
              "9223372036854775807 0 0",
              "-9223372036854775808 0 0",
              ":-1",
              ":0",
              ":1",
              ":2",
              "+OK",
              "$-1",
              "$1\r\n1",
              "*0"}) {
            for (const command_variant how : {evalsha, eval}) {
                CAPTURE(invalid);
                CHECK(
                    with_reply(invalid, [&](auto& got) { return in_words(read(got, how)); })
                    == "error");
            }
        }
    }
}

TEST_CASE("only OK to a SET is a grant, and only nil shows that another owner has the lock") {
    const auto means = [](const char* reply) {
        return with_reply(reply, [](auto& got) { return in_words(read_acquire(got, native)); });
    };
    CHECK(means("+OK") == "granted");
    CHECK(means("$-1") == "held");
    for (const char* const other :
         {"+QUEUED",
          "+",
          "$2\r\nOK",
          ":1",
          ":0",
          "*0",
          "-OK",
          "-LOADING Redis is loading",
          "-READONLY You can't write",
          "-OOM",
          "-NOAUTH Authentication required.",
          "-MISCONF Redis is configured"}) {
        CAPTURE(other);
        CHECK(means(other) == "error");
    }
}

TEST_CASE("a handshake returns since when a master has lost no data") {
    const struct {
        const char* reply;
        const char* means;
    } rows[] = {
        {"1 30001000 1000 '3 r'", "for 30000000 until 30001000 at 1000 '3 r'"},
        {"0 1000000 6000000 '3 r'", "for 0 until 1000000 at 6000000 '3 r'"},
        {"2 30001000 1000 '3 r'", "for 30000000 until 30001000 at 1000 raised '3 r'"},
        // The quarantine of a damaged record: it does not fit into the reply.
        {"0 -9223372036854775808 1 '3 r'", "for 31556952000000 until 9007199254740991 at 1 '3 r'"},
        {"-1 0 1000", "for 0 until 0 at 1000 unreadable ''"},
        {"1 30001000 1000", "invalid"}, // without a record
        {"-1 0 1000 '3 r'", "invalid"},
        {":1", "invalid"},
        {"-NOPERM", "invalid"},
    };
    for (const auto& [reply, means] : rows) {
        CHECK(
            with_reply(
                reply,
                [](auto& got) {
                    const auto found = read_handshake(got);
                    std::ostringstream out;
                    if (!found) {
                        return std::string("invalid");
                    }
                    out << "for " << found->quarantine.count() << " until " << found->ends_us
                        << " at " << found->server_us << (found->raised ? " raised" : "")
                        << (found->readable ? "" : " unreadable") << " '" << found->record << "'";
                    return out.str();
                })
            == means);
    }
}

// The reply to one call for several locks: "at CLOCK: a vote for each, ..." if it was executed,
// else what it means for each of them.
std::string
means(command_kind kind, bool fenced, command_variant how, std::size_t locks, const char* words) {
    return with_reply(words, [&](const reply& got) {
        const auto with_error = [](const answer& one, std::string_view error) {
            return in_words(one) + (error.empty() ? "" : " '" + std::string(error) + "'");
        };
        frame_answers all(got, kind, how, fenced, locks);
        if (!all.executed()) {
            CHECK(in_words(all.next()) == in_words(all.call()));
            return with_error(all.call(), all.error());
        }
        CHECK(all.error().empty());
        std::string out = all.forgot() ? "forgot " : "";
        out += all.call().server_us == 0 ? "" : "at " + std::to_string(all.call().server_us);
        for (std::size_t i = 0; i < locks; ++i) {
            const answer one = all.next();
            out += (i == 0 ? ": " : ", ") + with_error(one, all.error());
        }
        return out;
    });
}

TEST_CASE("a call for several locks has a vote for each, of which the reply names the exceptions") {
    const struct {
        command_kind kind;
        std::size_t locks;
        const char* reply;
        const char* means;
        bool fenced = false;
    } rows[] = {
        {acquires, 3, "1 1000", "at 1000: granted, granted, granted"},
        {acquires,
         6,
         "1 1000 2 250 3 -1 5 'WRONGTYPE Operation' 6 'OOM not allowed'",
         "at 1000: granted, held left 250, held, granted, owned_by_other 'WRONGTYPE Operation', "
         "error 'OOM not allowed'"},
        {acquires, 2, "1 1000 1 0", "at 1000: held left 0, granted"},
        {acquires, 2, "1 1000 1 'NOPERM a key'", "at 1000: error 'NOPERM a key', granted"},
        {acquires, 1, "1 -5", ": granted"}, // the clock is within what a script can count
        {acquires, 1, "1 9223372036854775807", "at 9007199254740991: granted"},
        // With fencing: the counter of each.
        {acquires,
         6,
         "1 1000 17 -2 -252 -1 'WRONGTYPE Operation' 0",
         "at 1000: granted counter 17, held left 0, held left 250, held, owned_by_other "
         "'WRONGTYPE Operation', granted",
         true},
        {acquires,
         2,
         "1 1000 9007199254740990 9007199254740991",
         "at 1000: granted counter 9007199254740990, error",
         true},
        {acquires,
         2,
         "1 1000 9223372036854775807 -9223372036854775808",
         "at 1000: error, held left 31556952000",
         true},
        {acquires,
         3,
         "1 1000 17 nil 19",
         "at 1000: granted counter 17, error, granted counter 19",
         true},
        {extends,
         8,
         "1 1000 2 70 3 -1 4 -2 5 -3 7 'WRONGTYPE Operation' 8 'READONLY replica'",
         "at 1000: granted, owned_by_other left 70, owned_by_other, absent forgot, absent, granted,"
         " owned_by_other 'WRONGTYPE Operation', error 'READONLY replica'"},
        {extends, 2, "1 1000", "at 1000: granted, granted", true},
        {extends, 2, "1 1000 2 -3", "at 1000: granted, absent", true},
        {extends, 1, "2 1000", "forgot at 1000: granted"},
        {removes,
         8,
         "1 0 1 0 2 -1 3 -2 4 3 6 'ERR why' 7 -3 8 1",
         ": owned_by_other, absent, granted unpublished, granted counter 2, granted, error "
         "'ERR why', error, error"},
        {removes, 2, "1 0", ": granted, granted", true},
    };
    for (const auto& [kind, locks, reply, expected, fenced] : rows) {
        CHECK(means(kind, fenced, evalsha, locks, reply) == expected);
    }
}

TEST_CASE("a call for several locks that a master did not execute is refused for each") {
    const struct {
        command_kind kind;
        const char* reply;
        const char* means;
    } rows[] = {
        {acquires, "-1 0 1000", "timed_out late at 1000"},
        {acquires, "-2 5000 1000", "quarantined for 5000 until 6000 at 1000"},
        {acquires, "-4 7000 1000", "quarantined forgot for 7000 until 8000 at 1000"},
        {extends, "-1 0 1000", "timed_out late at 1000"},
        {extends, "-4 0 1000", "error forgot at 1000"}, // the earlier vote stays
        // A script for one lock could say these, and one for several never does.
        {extends, "-2 0 1000", "error"},
        {extends, "-3 0 1000", "error"},
        {removes, "-1 0 1000", "error"},
    };
    for (const bool fenced : {false, true}) {
        for (const auto& [kind, reply, expected] : rows) {
            CHECK(means(kind, fenced, evalsha, 2, reply) == expected);
        }
        for (const command_kind kind : {acquires, extends, removes}) {
            for (const char* const other :
                 {"0 250 1000", "2 0 1000", "3 0 1000", "-5 0 1000", ":1", "+OK", "$-1"}) {
                CHECK(means(kind, fenced, evalsha, 2, other) == "error");
            }
        }
    }
}

TEST_CASE("a reply for several locks that no script gives is an error for each of them") {
    for (const command_kind kind : {acquires, extends, removes}) {
        for (const char* const invalid :
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
            CAPTURE(invalid, static_cast<int>(kind));
            CHECK(means(kind, false, evalsha, 3, invalid).starts_with("error"));
        }
    }
    for (const char* const invalid : // a value for each, with fencing
         {"1 1000",
          "1 1000 17 18",
          "1 1000 17 18 19 20",
          "1 1000 1 17 2 18",
          "1 1000 17 [18]",
          "1 1000 [17 18]",
          "1 1000 17 [] 18",
          "1 1000 17 18 []"}) {
        CAPTURE(invalid);
        CHECK(means(acquires, true, evalsha, 3, invalid).starts_with("error"));
    }
}

TEST_CASE("an error of a call for several locks is each lock's, and sends it in another way") {
    const struct {
        const char* error;
        command_variant how;
        std::size_t locks;
        const char* means;
    } rows[] = {
        {"LOADING Redis", evalsha, 2, "error for_one"},
        {"WRONGTYPE Operation", evalsha, 2, "error for_one"}, // else it is said of one lock
        {"OOM not allowed", evalsha, 2, "error for_one"},
        {"OOM not allowed", evalsha, 1, "error"},
        {"NOPERM access to a key", evalsha, 2, "error use_eval for_one"}, // it may be one key's
        {"NOPERM access to a key", eval, 2, "error use_eval for_one"},
        {"NOPERM access to a key", evalsha, 1, "error use_eval"},
        {"NOPERM access to a key", eval, 1, "error"}, // EVAL is the last
        {"NOSCRIPT No script", evalsha, 2, "error use_eval"},
        {"NOSCRIPT No script", evalsha, 1, "error use_eval"},
        {"NOSCRIPT No script", eval, 2, "error"},
        {"NOSCRIPT No script", eval, 1, "error"},
    };
    for (const auto& [error, how, locks, expected] : rows) {
        for (const command_kind kind : {acquires, extends, removes}) {
            for (const bool fenced : {false, true}) {
                const std::string reply = "-" + std::string(error);
                CHECK(
                    means(kind, fenced, how, locks, reply.c_str())
                    == expected + (" '" + std::string(error) + "'"));
            }
        }
    }
}

}} // namespace answer_test
