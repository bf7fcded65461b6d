#include "core/bytes/command.hpp"
#include "core/bytes/guarded_scripts.hpp"
#include "core/bytes/heal_scripts.hpp"
#include "core/bytes/scripts.hpp"
#include "support/test.hpp"

namespace command_test { namespace {

using namespace redlock::core;

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

TEST_CASE("the length of an argument is a number of any size") {
    for (const std::size_t size : {0, 1, 9, 10, 11, 99, 100, 101, 1000, 100'000}) {
        std::string out;
        append_command(out, {std::string(size, 'x')});
        CHECK(out.starts_with("*1\r\n$" + std::to_string(size) + "\r\n"));
        CHECK(out.size() == 4 + 1 + std::to_string(size).size() + 2 + size + 2);
    }
}

TEST_CASE("a lock is set with NX and PX in one command") {
    std::string out;
    out.append(set_begin());
    append_argument(out, "the:key");
    append_argument(out, "the:token");
    out.append(set_end(86'400'000ms));
    CHECK(words_of(out) == "SET the:key the:token NX PX 86400000");
}

TEST_CASE("what is published of a removal is a part of its token") {
    std::string out;
    append_publish(out, "the:key:free", "0123456789abcdef0123456789abcdef01234567");
    CHECK(words_of(out) == "PUBLISH the:key:free 0123456789abcdef");
}

TEST_CASE("commands fall back from EVALSHA to EVAL") {
    server_capabilities all;
    const auto variant = [&](command_kind of) { return all.of(lock_form::exclusive, of); };
    constexpr std::array kinds{
        command_kind::remove,
        command_kind::extend,
        command_kind::raise,
        command_kind::heal,
        command_kind::take_ticket,
        command_kind::leave_queue};
    for (const command_kind kind : kinds) {
        // A script that the server may not have is sent whole.
        CHECK(variant(kind) == command_variant::eval);
        all.learn(lock_form::exclusive, kind, true);
        CHECK(variant(kind) == command_variant::evalsha);
    }
    all.evalsha = false;
    for (const command_kind kind : kinds) {
        CHECK(variant(kind) == command_variant::eval);
    }
}

TEST_CASE("what a server knows of one script says nothing of another") {
    constexpr std::array forms{
        lock_form::exclusive, lock_form::all, lock_form::shared, lock_form::announced};
    constexpr std::array kinds{
        command_kind::acquire,
        command_kind::raise,
        command_kind::remove,
        command_kind::extend,
        command_kind::heal};
    for (const lock_form form : forms) {
        for (const command_kind kind : kinds) {
            if (!has_own_script(form, kind)) {
                continue;
            }
            server_capabilities all;
            all.learn(form, kind, true);
            for (const lock_form other : forms) {
                for (const command_kind what : kinds) {
                    const bool same = form == other && kind == what;
                    CHECK((all.of(other, what) == command_variant::evalsha) == same);
                }
            }
            all.learn(form, kind, false);
            CHECK(all == server_capabilities{});
        }
    }
}

TEST_CASE("a guarded command names its keys, then what it compares and checks") {
    const lock_names names{"p{r}", "p{r}:fence", "p:epoch", "the:token"};
    const master_guard guard{"run", 30'602'000us, 1'700'000'000'000'123};
    const fence fencing{17, 24h};
    const auto said = [](const form_command& what) {
        std::string out;
        append_form_command(out, what);
        return words_of(out);
    };
    CHECK(
        said(
            {.kind = command_kind::raise,
             .how = command_variant::evalsha,
             .names = names,
             .fencing = fencing})
        == "EVALSHA " + std::string(guarded_raise.sha1)
               + " 2 p{r} p{r}:fence the:token 17 86400000");
    CHECK(
        said(
            {.kind = command_kind::heal,
             .names = names,
             .fencing = fencing,
             .ttl = 12'345ms,
             .guard = guard})
        == "EVAL " + std::string(guarded_heal.text)
               + " 3 p{r} p{r}:fence p:epoch the:token 12345 17 86400000 run 30602000 "
                 "1700000000000123");
}

}} // namespace command_test
