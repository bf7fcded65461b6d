// The intent of a waiter that meets readers: it keeps new readers out while it waits, and goes with
// it.

#include "waiters.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace intent_test { namespace {

using namespace unit;
namespace core = redlock::core;

// Of three masters; one reader has the lock.
struct read_quorum : started_quorum {
    read_quorum() : started_quorum(guarded_settings_for(3)) { reader = read(once()); }

    answer read(const acquire_options& options) {
        const std::uint64_t name = acquire_form(core::lock_form::shared, options, "r");
        run_for(10ms);
        return answer_to(name) != nullptr ? answered(name) : answer();
    }

    std::uint64_t write(redlock::wait_for wait, bool fencing = false, bool fifo = false) {
        acquire_options options = once();
        options.wait = wait;
        options.fifo = fifo;
        options.fencing = fencing;
        return acquire_form(core::lock_form::exclusive, options, "r");
    }

    std::size_t intents() {
        return static_cast<std::size_t>(std::ranges::count_if(masters, [&](virtual_master& one) {
            return one.value_of("p:{r}:intent", now()).has_value();
        }));
    }

    answer reader;
};

TEST_CASE("while a resource has readers, only readers are granted it") {
    read_quorum it;
    CHECK(it.read(once()).won);
    for (const bool fencing : {false, true}) {
        const std::uint64_t alone = it.write(redlock::wait_for::none(), fencing);
        it.run_for(10ms);
        CHECK(!it.answered(alone).won);
    }
    const std::uint64_t several = it.acquire_form(core::lock_form::all, once(), "r");
    it.run_for(10ms);
    CHECK(!it.answered(several).won);
    CHECK(it.intents() == 0); // none of them waits
}

TEST_CASE("a waiter that meets readers keeps new ones out, and is next") {
    const bool fencing = GENERATE(false, true);
    const bool split = GENERATE(false, true); // its attempts get a vote
    const bool fifo = GENERATE(false, true);
    read_quorum it;
    if (split) {
        it.masters[2].run({"DEL", "p:{r}"}, it.now());
    }
    const std::uint64_t alone = it.write(redlock::wait_for::forever(), fencing, fifo);
    REQUIRE(it.run_while_not([&] { return it.intents() >= 2; }, 1s));
    CHECK(!it.read(once()).won);
    it.run_for(5s); // it is renewed
    CHECK(it.intents() >= 2);
    CHECK(!it.read(once()).won);
    it.release(it.reader);
    CHECK(it.awaited(alone).won);
    CHECK(it.intents() == 0);
}

TEST_CASE("a waiter whose wait ends takes its intent with it") {
    read_quorum it;
    const std::uint64_t alone = it.write(300ms);
    it.run_for(200ms);
    CHECK(it.intents() == 3);
    if (GENERATE(false, true)) { // during an attempt
        const std::size_t attempts = it.tokens.size();
        REQUIRE(it.run_while_not([&] { return it.tokens.size() > attempts; }));
        it.cancel(alone);
    }
    REQUIRE(it.run_while_not([&] { return it.answer_to(alone) != nullptr; }, 1s));
    it.run_for(5ms);
    CHECK(it.intents() == 0);
}

TEST_CASE("a writer that becomes a reader keeps its lease, and other readers are let in") {
    read_quorum it;
    it.release(it.reader, 10ms);
    const answer writer = it.take(once());
    CHECK(!it.read(once()).won);
    it.engine.downgrade(writer.lease, it.now());
    it.run_for(10ms);
    CHECK(it.read(once()).won);
    CHECK(it.release_now(writer) == release_result::released);
}

}} // namespace intent_test
