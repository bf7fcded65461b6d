// The order of arrival between processes, with real masters. Each client here is a manager of its
// own, which is what a process is to the masters.
#include "guarded_quorum.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace redlock::test { namespace {

acquire_options in_order() {
    acquire_options options = waiting(24h);
    options.fifo = true;
    return options;
}

// How many wait, on whichever master keeps the queue.
std::size_t queued(quorum_of_masters& masters) {
    std::size_t all = 0;
    for (const master_process& master : masters) {
        all += std::stoul(master.command({"ZCARD", lock_key("r") + ":queue"}));
    }
    return all;
}

TEST_CASE("in a fair queue processes own the lock in the order of their arrival") {
    const protocol speaks = GENERATE(protocol::plain, protocol::guarded);
    const auto ordered = [&](config& settings) {
        settings.protocol = speaks;
        // Waiters are woken, or look again so as to keep their places: they don't happen to ask.
        settings.retry_delay_min = 5ms;
        settings.retry_delay_max = 1h;
        settings.master_timeout = 400ms; // a place is kept for 2 s
    };
    constexpr std::size_t masters = 5;
    quorum_fixture site(masters, ordered);
    const auto until_queued = [&](std::size_t count) {
        REQUIRE(site.eventually([&] { return queued(site.masters) == count; }));
    };
    std::vector<std::unique_ptr<client>> others;
    for (std::size_t i = 0; i < 4; ++i) {
        others.push_back(std::make_unique<client>(site.io, site.changed(ordered), masters));
    }
    lock held = site.me.take("r", in_order());
    until_queued(0);
    std::vector<acquisition_ptr> waiters;
    for (const auto& one : others) {
        waiters.push_back(one->begin("r", in_order()));
        until_queued(waiters.size());
    }
    client* holder = &site.me;
    for (std::size_t turn = 0; turn < others.size(); ++turn) {
        CHECK(holder->release(held) == release_result::released);
        holder = others[turn].get();
        held = granted(holder->finish(waiters[turn]));
        CHECK(
            std::ranges::count_if(waiters, [](const auto& one) { return one->done; })
            == static_cast<std::ptrdiff_t>(turn + 1));
        until_queued(others.size() - turn - 1);
    }
    CHECK(site.eventually([&] { return site.masters.total_keys("redlock:{r}:queue*") == 0; }));
}

}} // namespace redlock::test
