#include "core/command.hpp"
#include "core/scripts.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <string>
#include <string_view>

using namespace redlock::core;
using redlock::vote;
using namespace std::chrono_literals;

namespace {

// The words of a command, separated by spaces.
std::string words_of(const std::string& bytes) {
    std::string out;
    std::size_t at = bytes.find("\r\n") + 2;
    while (at < bytes.size()) {
        const std::size_t size = std::stoul(bytes.substr(at + 1));
        at = bytes.find("\r\n", at) + 2;
        out += (out.empty() ? "" : " ") + bytes.substr(at, size);
        at += size + 2;
    }
    return out;
}

std::string removal(rung how, native_delete native) {
    std::string out;
    append_remove(out, how, native, "the:key", "the:token");
    return words_of(out);
}

std::string extension(rung how) {
    std::string out;
    append_extend(out, how, "the:key", "the:token", 12'345ms);
    return words_of(out);
}

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

void check(const reply& answer, rung how, expectation expected) {
    CAPTURE(answer.text, answer.integer, static_cast<int>(answer.type), static_cast<int>(how));
    const compared got = compare_result(answer, how);
    CHECK(got.ask_exists == expected.ask_exists);
    CHECK(got.say_otherwise == expected.say_otherwise);
    if (!expected.ask_exists && !expected.say_otherwise) {
        CHECK(got.said == expected.said);
    }
}

} // namespace

TEST_CASE("a lock is set with NX and PX in one command") {
    std::string out;
    append_set(out, "the:key", "the:token", 86'400'000ms);
    CHECK(words_of(out) == "SET the:key the:token NX PX 86400000");
}

TEST_CASE("every rung of a removal compares with the token") {
    const std::string script(compare_and_delete.text);
    const std::string digest(compare_and_delete.sha1);
    CHECK(removal(rung::native, native_delete::delex) == "DELEX the:key IFEQ the:token");
    CHECK(removal(rung::native, native_delete::delifeq) == "DELIFEQ the:key the:token");
    CHECK(
        removal(rung::evalsha, native_delete::delex)
        == "EVALSHA " + digest + " 1 the:key the:token");
    CHECK(removal(rung::eval, native_delete::none) == "EVAL " + script + " 1 the:key the:token");
}

TEST_CASE("every rung of an extension compares with the token") {
    const std::string script(compare_and_extend.text);
    const std::string digest(compare_and_extend.sha1);
    CHECK(extension(rung::native) == "SET the:key the:token IFEQ the:token PX 12345");
    CHECK(extension(rung::evalsha) == "EVALSHA " + digest + " 1 the:key the:token 12345");
    CHECK(extension(rung::eval) == "EVAL " + script + " 1 the:key the:token 12345");
}

TEST_CASE("a ladder is climbed down from native to EVALSHA to EVAL") {
    ladder all{.delete_command = native_delete::delex, .set_ifeq = true};
    CHECK(all.remove() == rung::native);
    CHECK(all.extend() == rung::native);
    all.delete_command = native_delete::none;
    all.set_ifeq = false;
    CHECK(all.remove() == rung::eval); // a script that the server may not have is sent whole
    CHECK(all.extend() == rung::eval);
    all.knows_remove = true;
    CHECK(all.remove() == rung::evalsha);
    CHECK(all.extend() == rung::eval);
    all.knows_extend = true;
    CHECK(all.extend() == rung::evalsha);
    all.evalsha = false;
    CHECK(all.remove() == rung::eval);
    CHECK(all.extend() == rung::eval);
}

TEST_CASE("only OK to a SET is a grant, and only nil says that somebody has it") {
    CHECK(vote_on_set(text(reply_type::status, "OK")) == vote::granted);
    CHECK(vote_on_set(text(reply_type::nil, "")) == vote::held);
    CHECK(vote_on_set(text(reply_type::status, "QUEUED")) == vote::error);
    CHECK(vote_on_set(text(reply_type::status, "")) == vote::error);
    CHECK(vote_on_set(text(reply_type::string, "OK")) == vote::error);
    CHECK(vote_on_set(integer(1)) == vote::error);
    CHECK(vote_on_set(integer(0)) == vote::error);
    CHECK(vote_on_set(text(reply_type::array, "")) == vote::error);
    for (const auto* why :
         {"OK",
          "LOADING Redis is loading",
          "READONLY You can't write",
          "OOM",
          "NOAUTH Authentication required.",
          "MISCONF Redis is configured"}) {
        CHECK(vote_on_set(error(why)) == vote::error);
    }
}

TEST_CASE("the scripts answer one, nought or minus one") {
    for (const rung how : {rung::evalsha, rung::eval}) {
        check(integer(1), how, {vote::granted});
        check(integer(0), how, {vote::foreign});
        check(integer(-1), how, {vote::absent});
        check(integer(2), how, {vote::error});
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
    CHECK(vote_on_exists(integer(1)) == vote::foreign);
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
        check(error("WRONGTYPE Operation against a key"), how, {vote::foreign});
        check(error("ERR Error running script: WRONGTYPE Operation"), how, {vote::foreign});
        check(error(""), how, {vote::error});
    }
}

TEST_CASE("errors that say that a server cannot serve make it introduce itself again") {
    CHECK(means_unfit("READONLY You can't write against a read only replica."));
    CHECK(means_unfit("LOADING Redis is loading the dataset in memory"));
    CHECK(means_unfit("NOAUTH Authentication required."));
    CHECK(means_unfit("MASTERDOWN Link with MASTER is down"));
    CHECK(!means_unfit("OOM command not allowed when used memory > 'maxmemory'."));
    CHECK(!means_unfit("ERR READONLY"));
    CHECK(!means_unfit(""));
}
