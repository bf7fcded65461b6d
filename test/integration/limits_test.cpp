// Much of what there may be: resources, slots, and memory that is used up.
#include "config/lock_request.hpp"
#include "guarded_quorum.hpp"

namespace redlock::test::limits { namespace {

using detail::resources_max;
using detail::slot_pool_size_max;

acquisition_ptr acquire_all(client& one, std::vector<std::string> names) {
    return one.finish(begun([&](auto handler) {
        one.manager().async_acquire(std::move(names), once(), std::move(handler));
    }));
}

lock take_as(lock_mode mode, client& one, const std::string& name, acquire_options options) {
    options.mode = mode;
    return granted(one.acquire(name, options));
}

TEST_CASE(
    "at maxmemory each lock lives on, is lowered, healed and released; new ones are refused") {
    two_processes site;
    const std::string readers_key = lock_key("r") + ":readers";
    constexpr auto reader = lock_mode::shared;
    const acquire_options brief = once(2s);
    std::vector<lock> held;
    held.push_back(take_as(reader, site.me, "r", brief));
    held.push_back(site.me.take("plain", brief));
    held.push_back(site.me.take("fenced", with_token(brief)));
    held.push_back(site.me.take("lowered", brief));
    site.everywhere({"CONFIG", "SET", "maxmemory", "100kb"});
    for (const char* const name : {"plain", "fenced"}) {
        site.masters[0].command({"DEL", lock_key(name), fence_key_of(name)});
    }
    site.masters[0].command({"DEL", readers_key});
    std::optional<error_code> lowered;
    held.back().async_downgrade([&](error_code error) { lowered = error; });
    run_until(site.io, [&] { return lowered.has_value(); });
    CHECK(lowered == error_code());
    site.pass(4500ms);
    for (const lock& one : held) {
        INFO(one.resource());
        CHECK(one.held());
    }
    CHECK(site.masters[0].command({"ZCARD", readers_key}) == "1");
    CHECK(exists(site.masters[0], lock_key("plain")));
    CHECK(
        site.masters[0].command({"GET", fence_key_of("fenced")})
        == std::to_string(held[2].fencing_token()));

    acquire_options reads = once();
    reads.mode = reader;
    const std::vector<acquisition_ptr> refused{
        site.other.acquire("new"),
        site.other.acquire("new", with_token()),
        site.other.acquire("r", reads)};
    for (const acquisition_ptr& one : refused) {
        INFO(one->explained());
        CHECK(*one == errc::no_quorum);
        CHECK(contains(to_string(one->why), "OOM"));
    }
    for (lock& one : held) {
        INFO(one.resource());
        CHECK(site.me.release(one) == release_result::released);
    }
    CHECK(site.eventually([&] {
        return site.masters.total_keys(lock_key("*")) + site.masters.total_keys(readers_key) == 0;
    }));
}

TEST_CASE("as many resources as are allowed are one lock") {
    quorum_fixture site(1, guarded);
    std::vector<std::string> many;
    for (std::size_t i = 0; i < resources_max; ++i) {
        many.push_back(std::to_string(i));
    }
    lock full = granted(acquire_all(site.me, many));
    CHECK(site.masters.total_keys("redlock:{*}") == resources_max);
    CHECK(site.me.release(full) == release_result::released);
    CHECK(site.masters.total_keys("redlock:{*}") == 0);
}

TEST_CASE("in a cluster the refusal of several resources says which hash apart") {
    master_options cluster;
    cluster.extra = {"--cluster-enabled", "yes"};
    quorum_of_masters masters(1, cluster);
    masters[0].command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
    config settings = config_for(masters.urls());
    settings.protocol = protocol::guarded;
    asio::io_context io;
    client apart(io, settings, 1);
    const acquisition_ptr refused = acquire_all(apart, {"a", "b"});
    CHECK(*refused == errc::no_quorum);
    CHECK(contains(refused->why.votes.at(0).text, "{a} and redlock:{b} hash apart"));
    settings.key_prefix = "{locks}";
    client together(io, settings, 1);
    CHECK(granted(acquire_all(together, {"a", "b"})).held());
}

TEST_CASE("the largest pool has a free slot, and a status") {
    quorum_fixture site(3, [](config& settings) {
        guarded(settings);
        settings.master_timeout = 10s; // a status of this size takes a sanitizer that long
    });
    const redlock::slots large("large", slot_pool_size_max);
    // A look at all slots takes a slow machine seconds.
    lock one = granted(site.me.finish(begun([&](auto handler) {
        site.me.manager().async_acquire(large, waiting(60s), std::move(handler));
    })));
    std::optional<lock_status> found;
    site.me.manager().async_query(large, [&](error_code error, lock_status status) {
        CHECK(!error);
        found = std::move(status);
    });
    run_until(site.io, [&] { return found.has_value(); });
    CHECK(found->slots.size() == slot_pool_size_max);
    CHECK(found->count(lock_state::held) == 1);
    CHECK(found->slots[one.slot()].state == lock_state::held);
}

}} // namespace redlock::test::limits
