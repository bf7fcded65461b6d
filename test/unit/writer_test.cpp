// The intent of a writer: it keeps new readers out while the writer waits, and goes with it.

#include "waiters.hpp"

namespace writer_test { namespace {

using namespace unit;
namespace core = redlock::core;

// Of three masters; one reader has the lock.
struct read_quorum : started_quorum {
    read_quorum() : started_quorum(guarded_settings_for(3)) {
        const std::uint64_t name = acquire_form(core::lock_form::shared, once(), "r");
        run_for(10ms);
        reader = answered(name);
    }

    std::uint64_t write(redlock::wait_for wait) {
        acquire_options options = once();
        options.wait = wait;
        return acquire_form(core::lock_form::writer, options, "r");
    }

    std::size_t intents() {
        return static_cast<std::size_t>(std::ranges::count_if(masters, [&](virtual_master& one) {
            return one.value_of("p:{r}:intent", now()).has_value();
        }));
    }

    answer reader;
};

TEST_CASE("a writer whose wait ends takes its intent with it") {
    read_quorum it;
    const std::uint64_t writer = it.write(300ms);
    it.run_for(290ms);
    CHECK(it.intents() == 3);
    REQUIRE(it.run_while_not([&] { return it.answer_to(writer) != nullptr; }, 1s));
    it.run_for(5ms);
    CHECK(it.intents() == 0);
}

TEST_CASE("a writer that is cancelled between two attempts takes its intent with it") {
    read_quorum it;
    const std::uint64_t writer = it.write(redlock::wait_for::forever());
    REQUIRE(it.run_while_not([&] { return it.intents() == 3; }, 1s));
    it.run_for(5ms); // all have replied, and the next attempt is not due
    it.cancel(writer, 5ms);
    CHECK(it.intents() == 0);
}

TEST_CASE("a writer that does not wait announces nothing") {
    read_quorum it;
    const std::uint64_t writer = it.write(redlock::wait_for::none());
    it.run_for(5ms);
    CHECK(!it.answered(writer).won);
    CHECK(it.intents() == 0);
}

TEST_CASE("the release of a writer removes its intent from a master that did not grant it") {
    read_quorum it;
    const std::uint64_t writer = it.write(redlock::wait_for::forever());
    REQUIRE(it.run_while_not([&] { return it.intents() == 3; }, 1s));
    it.masters[2].put("p:{r}", "another writer");
    it.release(it.reader);
    REQUIRE(it.run_while_not([&] { return it.answer_to(writer) != nullptr; }, 5s));
    REQUIRE(it.answered(writer).won);
    CHECK(it.masters[2].value_of("p:{r}:intent", it.now()));
    it.release(it.answered(writer), 5ms);
    CHECK(it.intents() == 0);
    CHECK(it.masters[2].value_of("p:{r}", it.now()) == "another writer");
}

TEST_CASE("a writer that waits in the same process asks when the holder becomes a reader") {
    started_quorum it(guarded_settings_for(3));
    const std::uint64_t holder = it.acquire_form(core::lock_form::writer, once(), "r");
    it.run_for(10ms);
    acquire_options patient = once();
    patient.wait = redlock::wait_for::forever();
    const std::uint64_t writer = it.acquire_form(core::lock_form::writer, patient, "r");
    it.run_for(1500ms);
    const std::size_t before = it.tokens.size();
    it.engine.downgrade(it.answered(holder).lease, it.now());
    it.run_for(5ms);
    CHECK(it.tokens.size() == before + 1); // one more attempt
    CHECK(it.answer_to(writer) == nullptr);
}

}} // namespace writer_test
