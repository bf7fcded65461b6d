// What the scripts do that keep a lease alive, on real Lua: EXTEND creates nothing, and HEAL
// creates what is missing where it may.
#include "core/form_scripts.hpp"
#include "core/guarded_scripts.hpp"
#include "core/heal_scripts.hpp"
#include "memory/server.hpp"

#include <catch2/catch_test_macros.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace heal_scripts_test {

namespace core = redlock::core;
namespace memory = redlock::testing::memory;

namespace {

constexpr std::int64_t second = 1'000'000;
constexpr std::int64_t born = 1'700'000'000 * second;
constexpr std::int64_t present = born + 100 * second;

// One master that remembers, in the middle of a lease for "me" with token 50. All scripts are told
// to prolong it to 10 s, until 5 s from now, and that a quarantine lasts 30 s.
struct one_master {
    one_master() : it(lua) { remember(born); }

    std::string say(std::initializer_list<std::string_view> words) {
        return it.execute(std::vector<std::string_view>(words), present).describe();
    }
    // The status that a script answers.
    std::string run(const core::script& what, std::initializer_list<std::string_view> words) {
        std::vector<std::string_view> all{"EVAL", what.text};
        all.insert(all.end(), words);
        const std::string text = it.execute(all, present).describe();
        return text.substr(0, text.find('\n'));
    }
    std::string exclusive(const core::script& what) {
        return run(
            what,
            {"3", "a", "a:f", "epoch", "me", "10000", token, "86400000", run_id, q, not_after});
    }
    std::string all(const core::script& what) {
        return run(
            what,
            {"5",
             "a",
             "a:f",
             "b",
             "b:f",
             "epoch",
             "me",
             "10000",
             token,
             "86400000",
             run_id,
             q,
             not_after});
    }
    std::string writer(const core::script& what) {
        return run(
            what,
            {"4",
             "a",
             "a:f",
             "epoch",
             "a:r",
             "me",
             "10000",
             token,
             "86400000",
             run_id,
             q,
             not_after});
    }
    std::string reader(const core::script& what) {
        if (&what == &core::shared_extend) {
            return run(what, {"3", "a", "a:r", "epoch", "me", "10000", run_id, q, not_after, ""});
        }
        return run(what, {"3", "a", "a:r", "epoch", "me", "10000", run_id, q, not_after});
    }

    void remember(std::int64_t since, const std::string& of = "run", std::int64_t quarantine = 0) {
        say(
            {"SET",
             "epoch",
             "2 " + of + " - " + std::to_string(since) + " " + std::to_string(quarantine)});
    }
    void set(std::string_view key, std::string_view value, std::string_view left_ms) {
        say({"SET", key, value, "PX", left_ms});
    }
    std::string get(std::string_view key) { return say({"GET", key}); }
    long left(std::string_view key) { return std::stol(say({"PTTL", key})); }
    void reads(std::string_view token, std::int64_t ends_us) {
        say({"ZADD", "a:r", std::to_string(ends_us / 1000), token});
    }

    memory::lua_machine lua;
    memory::server it;
    std::string token = "50";
    std::string run_id = "run";
    std::string q = std::to_string(30 * second);
    std::string not_after = std::to_string(present + 5 * second);
};

// A form of an exclusive kind: its key is "a", and its counter "a:f".
struct form {
    const char* name;
    const core::script& extend;
    const core::script& heal;
    std::string (one_master::*say)(const core::script&);
};
const form exclusive{"exclusive", core::guarded_extend, core::guarded_heal, &one_master::exclusive};
const form writer{"writer", core::writer_extend, core::writer_heal, &one_master::writer};
const form all{"all", core::all_extend, core::all_heal, &one_master::all};

// What a lease of several resources needs besides.
void prepare(one_master& m, const form& what) {
    if (&what == &all) {
        m.set("b", "me", "4000");
        m.set("b:f", "50", "1000000");
    }
}

} // namespace

TEST_CASE("an extension prolongs a key that is there, and never shortens it") {
    for (const form& what : {exclusive, writer}) {
        CAPTURE(what.name);
        for (const bool longer : {false, true}) {
            one_master m;
            m.set("a", "me", longer ? "20000" : "4000");
            m.set("a:f", "50", "1000000");
            CHECK((m.*what.say)(what.extend) == "1");
            CHECK(m.get("a") == "me");
            CHECK(m.left("a") == (longer ? 20'000 : 10'000));
            CHECK(m.get("a:f") == "50");
            CHECK(m.left("a:f") == 86'400'000);
        }
    }
}

TEST_CASE("an extension of several resources prolongs each, and shortens none") {
    one_master m;
    m.set("a", "me", "20000");
    m.set("b", "me", "4000");
    CHECK(m.all(core::all_extend) == "1");
    CHECK(m.left("a") == 20'000);
    CHECK(m.left("b") == 10'000);
    CHECK(m.get("a:f") == "50");
    CHECK(m.get("b:f") == "50");
}

TEST_CASE("an extension and a heal bring a fencing counter up to the token, and lower none") {
    for (const form* const what : {&exclusive, &writer, &all}) {
        CAPTURE(what->name);
        for (const core::script* const script : {&what->extend, &what->heal}) {
            for (const char* const before : {"", "abc", "7", "50", "51"}) {
                one_master m;
                prepare(m, *what);
                m.set("a", "me", "4000");
                if (*before != '\0') {
                    m.set("a:f", before, "1000000");
                }
                CHECK((m.*what->say)(*script) == "1");
                CHECK(m.get("a:f") == (std::string(before) == "51" ? "51" : "50"));
                CHECK(m.left("a:f") == 86'400'000);
                if (what == &all) {
                    CHECK(m.get("b:f") == "50");
                }
            }
            one_master unfenced;
            prepare(unfenced, *what);
            unfenced.token = "0";
            unfenced.set("a", "me", "4000");
            CHECK((unfenced.*what->say)(*script) == "1");
            CHECK(unfenced.say({"EXISTS", "a:f"}) == "0");
        }
    }
}

TEST_CASE("an extension creates nothing, and says whether the master may have forgotten") {
    for (const form* const what : {&exclusive, &writer, &all}) {
        CAPTURE(what->name);
        one_master m;
        prepare(m, *what);
        CHECK((m.*what->say)(what->extend) == "-3");
        m.remember(present - 29 * second);
        CHECK((m.*what->say)(what->extend) == "-2");
        m.remember(present - 30 * second);
        CHECK((m.*what->say)(what->extend) == "-3");
        m.remember(present + second); // its clock was set back
        CHECK((m.*what->say)(what->extend) == "-2");
        m.remember(born, "another run");
        CHECK((m.*what->say)(what->extend) == "-2");
        m.say({"DEL", "epoch"});
        CHECK((m.*what->say)(what->extend) == "-2");
        CHECK(m.say({"EXISTS", "a"}) == "0");
        CHECK(m.say({"EXISTS", "a:f"}) == "0");
        CHECK(m.say({"EXISTS", "epoch"}) == "0");
        if (what == &all) { // none is extended, either
            CHECK(m.left("b") == 4'000);
        }
    }
}

TEST_CASE("a key that is there is extended in a quarantine, too") {
    for (const form* const what : {&exclusive, &writer, &all}) {
        CAPTURE(what->name);
        one_master m;
        prepare(m, *what);
        m.set("a", "me", "4000");
        m.remember(present - second);
        CHECK((m.*what->say)(what->extend) == "1");
        CHECK((m.*what->say)(what->heal) == "1");
        CHECK(m.left("a") == 10'000);
    }
}

TEST_CASE("a heal creates the key where it is missing, with its counter") {
    for (const form* const what : {&exclusive, &writer, &all}) {
        CAPTURE(what->name);
        for (const char* const before : {"", "7", "51"}) {
            one_master m;
            prepare(m, *what);
            if (*before != '\0') {
                m.set("a:f", before, "1000000");
            }
            CHECK((m.*what->say)(what->heal) == "2");
            CHECK(m.get("a") == "me");
            CHECK(m.left("a") == 10'000);
            CHECK(m.get("a:f") == (std::string(before) == "51" ? "51" : "50"));
            CHECK(m.left("a:f") == 86'400'000);
            CHECK((m.*what->say)(what->heal) == "1");
        }
    }
}

TEST_CASE("a heal of several resources creates those that are missing, and shortens none") {
    one_master m;
    m.set("b", "me", "20000");
    CHECK(m.all(core::all_heal) == "2");
    CHECK(m.left("a") == 10'000);
    CHECK(m.left("b") == 20'000);
    m.say({"DEL", "b"});
    CHECK(m.all(core::all_heal) == "2");
    CHECK(m.get("b") == "me");
}

TEST_CASE("a heal does nothing on a master that may have forgotten") {
    for (const form* const what : {&exclusive, &writer, &all}) {
        CAPTURE(what->name);
        one_master m;
        prepare(m, *what);
        const auto refused = [&] {
            CHECK((m.*what->say)(what->heal) == "-2");
            CHECK(m.say({"EXISTS", "a", "a:f"}) == "0");
        };
        m.remember(present - 29 * second);
        refused();
        m.remember(present + second);
        refused();
        m.remember(born, "another run");
        refused();
        m.say({"DEL", "epoch"});
        refused();
        m.remember(present - 30 * second);
        CHECK((m.*what->say)(what->heal) == "2");
    }
}

TEST_CASE("a quarantine is the longest that any client asked for") {
    for (const form* const what : {&exclusive, &writer, &all}) {
        CAPTURE(what->name);
        one_master m;
        prepare(m, *what);
        m.q = "0";
        m.remember(present - 59 * second, "run", 60 * second);
        CHECK((m.*what->say)(what->extend) == "-2");
        CHECK((m.*what->say)(what->heal) == "-2");
    }
}

TEST_CASE("what is late does nothing, and a heal without a limit is late") {
    for (const form* const what : {&exclusive, &writer, &all}) {
        CAPTURE(what->name);
        one_master m;
        prepare(m, *what);
        m.set("a", "me", "4000");
        m.not_after = std::to_string(present - 1);
        CHECK((m.*what->say)(what->extend) == "-1");
        CHECK((m.*what->say)(what->heal) == "-1");
        CHECK(m.left("a") == 4'000);
        m.say({"DEL", "a"});
        CHECK((m.*what->say)(what->heal) == "-1");
        CHECK(m.say({"EXISTS", "a"}) == "0");
        m.not_after = "0"; // the master's clock is not known
        CHECK((m.*what->say)(what->heal) == "-1");
        CHECK((m.*what->say)(what->extend) == "-3");
        m.not_after = std::to_string(present);
        CHECK((m.*what->say)(what->heal) == "2");
    }
}

TEST_CASE("another owner's key is neither extended nor healed over") {
    for (const form* const what : {&exclusive, &writer, &all}) {
        CAPTURE(what->name);
        one_master m;
        prepare(m, *what);
        m.set("a", "another", "4000");
        m.set("a:f", "7", "1000000");
        CHECK((m.*what->say)(what->extend) == "0");
        CHECK((m.*what->say)(what->heal) == "0");
        CHECK(m.get("a") == "another");
        CHECK(m.left("a") == 4'000);
        CHECK(m.get("a:f") == "7");
        CHECK(m.left("a:f") == 1'000'000);
    }
}

TEST_CASE("one of several resources that is another owner's is enough for none") {
    for (const char* const foreign : {"a", "b"}) {
        for (const bool other_there : {false, true}) {
            one_master m;
            const char* const other = *foreign == 'a' ? "b" : "a";
            m.set(foreign, "another", "4000");
            if (other_there) {
                m.set(other, "me", "4000");
            }
            CHECK(m.all(core::all_extend) == "0");
            CHECK(m.all(core::all_heal) == "0");
            CHECK(m.get(foreign) == "another");
            CHECK(m.get(other) == (other_there ? "me" : "(nil)"));
            if (other_there) {
                CHECK(m.left(other) == 4'000);
            }
            CHECK(m.say({"EXISTS", "a:f", "b:f"}) == "0");
        }
    }
}

TEST_CASE("a key of another type leaves no half of an extension or a heal behind") {
    for (const form* const what : {&exclusive, &writer, &all}) {
        CAPTURE(what->name);
        for (const char* const broken : {"a", "a:f", "b", "b:f", "a:r"}) {
            const bool of_all = *broken == 'b';
            const bool of_writer = std::string_view(broken) == "a:r";
            if ((of_all && what != &all) || (of_writer && what != &writer)) {
                continue;
            }
            CAPTURE(broken);
            one_master m;
            prepare(m, *what);
            m.say({"DEL", broken});
            of_writer ? m.set(broken, "text", "4000") : void(m.say({"HSET", broken, "x", "y"}));
            CHECK((m.*what->say)(what->heal).find("WRONGTYPE") != std::string::npos);
            for (const char* const key : {"a", "a:f"}) {
                CHECK(m.say({"EXISTS", key}) == (std::string_view(key) == broken ? "1" : "0"));
            }
            if (what == &all && !of_all) {
                CHECK(m.left("b") == 4'000);
                CHECK(m.left("b:f") == 1'000'000);
            }
        }
        one_master m;
        prepare(m, *what);
        m.set("a", "me", "4000");
        m.say({"HSET", "a:f", "x", "y"});
        CHECK((m.*what->say)(what->extend).find("WRONGTYPE") != std::string::npos);
        CHECK(m.left("a") == 4'000);
    }
}

TEST_CASE("a writer's key is not healed where somebody reads") {
    one_master m;
    m.reads("reader", present + second);
    CHECK(m.writer(core::writer_extend) == "0");
    CHECK(m.writer(core::writer_heal) == "0");
    CHECK(m.say({"EXISTS", "a"}) == "0");
    m.reads("reader", present); // the last millisecond is still the reader's
    CHECK(m.writer(core::writer_heal) == "0");
    m.reads("reader", present - 1000);
    CHECK(m.writer(core::writer_extend) == "-3");
    CHECK(m.writer(core::writer_heal) == "2");
}

TEST_CASE("a reader's entry is extended, and not created") {
    one_master m;
    CHECK(m.reader(core::shared_extend) == "-3");
    CHECK(m.say({"EXISTS", "a:r"}) == "0");
    m.reads("me", present - 1000); // it has ended
    CHECK(m.reader(core::shared_extend) == "-3");
    m.remember(present - second);
    CHECK(m.reader(core::shared_extend) == "-2");
    m.reads("me", present + second);
    CHECK(m.reader(core::shared_extend) == "1");
    CHECK(m.say({"ZSCORE", "a:r", "me"}) == std::to_string(present / 1000 + 10'000));
    CHECK(m.left("a:r") == 10'000);
    m.reads("me", present + 20 * second);
    CHECK(m.reader(core::shared_extend) == "1");
    CHECK(m.say({"ZSCORE", "a:r", "me"}) == std::to_string(present / 1000 + 20'000));
    m.not_after = std::to_string(present - 1);
    CHECK(m.reader(core::shared_extend) == "-1");
}

TEST_CASE("an extension makes a reader of the writer with its token") {
    one_master m;
    m.set("a", "me", "20000");
    CHECK(m.reader(core::shared_extend) == "1");
    CHECK(m.say({"EXISTS", "a"}) == "0");
    CHECK(m.say({"ZSCORE", "a:r", "me"}) == std::to_string(present / 1000 + 20'000));
    CHECK(m.left("a:r") == 20'000);
}

TEST_CASE("a reader's entry is healed where nobody writes and nothing may be forgotten") {
    one_master m;
    for (const char* const owner : {"another", "me"}) {
        m.set("a", owner, "4000");
        CHECK(m.reader(core::shared_heal) == "0");
        CHECK(m.say({"EXISTS", "a:r"}) == "0");
        m.say({"DEL", "a"});
    }
    m.remember(present - second);
    CHECK(m.reader(core::shared_heal) == "-2");
    m.remember(born, "another run");
    CHECK(m.reader(core::shared_heal) == "-2");
    m.remember(born);
    m.not_after = "0";
    CHECK(m.reader(core::shared_heal) == "-1");
    CHECK(m.say({"EXISTS", "a:r"}) == "0");
    m.not_after = std::to_string(present);
    m.reads("me", present - 1000);
    CHECK(m.reader(core::shared_heal) == "2");
    CHECK(m.say({"ZSCORE", "a:r", "me"}) == std::to_string(present / 1000 + 10'000));
    CHECK(m.left("a:r") == 10'000);
    m.remember(present - second);
    CHECK(m.reader(core::shared_heal) == "1");
    m.reads("me", present + 20 * second);
    CHECK(m.reader(core::shared_heal) == "1");
    CHECK(m.say({"ZSCORE", "a:r", "me"}) == std::to_string(present / 1000 + 20'000));
}

TEST_CASE("nothing is healed for a reader whose keys are of another type") {
    for (const char* const broken : {"a", "a:r"}) {
        one_master m;
        m.say({"HSET", broken, "x", "y"});
        const std::string said = m.reader(core::shared_heal);
        CHECK((said == "0" || said.find("WRONGTYPE") != std::string::npos));
        CHECK(m.say({"EXISTS", "a", "a:r"}) == "1");
    }
}

} // namespace heal_scripts_test
