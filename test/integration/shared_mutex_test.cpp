// Readers and writers of one resource, on real masters. Each client here is a manager of its own,
// which is what a process is to the masters.
#include "two_managers.hpp"

#include <redlock/lock_manager.hpp>

#include <catch2/generators/catch_generators.hpp>

#include <atomic>

namespace redlock::test { namespace {

enum class as : unsigned char { reader, owner };

acquisition_ptr
begin_as(as kind, client& one, acquire_options options = once(), const std::string& name = "r") {
    options.mode = kind == as::owner ? lock_mode::exclusive : lock_mode::shared;
    return begun(
        [&](auto handler) { one.manager().async_acquire(name, options, std::move(handler)); });
}

acquisition_ptr try_as(as kind, client& one, acquire_options options = once()) {
    return one.finish(begin_as(kind, one, options));
}

lock take_as(as kind, client& one, acquire_options options = once()) {
    return granted(try_as(kind, one, options));
}

error_code downgrade(lock& held, asio::io_context& io) {
    const auto result = std::make_shared<std::optional<error_code>>();
    held.async_downgrade([result](error_code error) { *result = error; });
    run_until(io, [&] { return result->has_value(); });
    return **result;
}

acquisition_ptr try_several(client& one, const std::vector<std::string>& names) {
    return one.finish(begun(
        [&](auto handler) { one.manager().async_acquire(names, once(), std::move(handler)); }));
}

const std::string readers_key = lock_key("r") + ":readers";
const std::string intent_key = lock_key("r") + ":intent";

struct reading_site : two_processes {
    using two_processes::two_processes;

    std::size_t readers_on(std::size_t i) {
        return std::stoul(masters[i].command({"ZCARD", readers_key}));
    }
    // Nothing but what the masters note of themselves, and the counters.
    bool clean() {
        return eventually([this] {
            return masters.total_keys(lock_key("r")) + masters.total_keys(readers_key) == 0;
        });
    }
};

TEST_CASE("shared mutex: readers share, each with a lease of its own") {
    reading_site site;
    std::vector<lock> readers;
    for (int i = 0; i < 5; ++i) {
        readers.push_back(take_as(as::reader, i % 2 == 0 ? site.me : site.other));
        CHECK_FALSE(readers.back().has_fencing_token());
        CHECK(readers.back().resource() == "r");
    }
    CHECK(site.eventually([&] { return site.readers_on(0) == 5; }));
    CHECK(readers[0].secret() != readers[2].secret());
    const acquisition_ptr refused = try_as(as::owner, site.other);
    CHECK(*refused == errc::contended);
    CHECK(!exists(site.masters[0], intent_key)); // it does not wait
    CHECK(try_several(site.other, {"q", "r"})->error == errc::contended);
    client plain(site.io, site.changed([](config& c) { c.protocol = protocol::plain; }), 3);
    CHECK(plain.acquire("r")->error == errc::contended);
    CHECK(site.masters[0].command({"SET", lock_key("r"), "x", "NX", "PX", "1000"}) == "(nil)");
    for (client* const asks : {&site.other, &plain}) {
        const lock_status found = asks->query("r");
        INFO(to_string(found));
        CHECK(found.state == lock_state::held);
        CHECK(found.readers == 5);
        CHECK(found.owner_digest.empty());
        CHECK(to_string(found).starts_with("held by 5 readers"));
    }
    for (std::size_t i = 1; i < readers.size(); ++i) {
        CHECK((i % 2 == 0 ? site.me : site.other).release(readers[i]) == release_result::released);
    }
    CHECK(site.me.extend(readers[0], 20s) == error_code());
    CHECK(try_as(as::owner, site.other)->error == errc::contended);
    CHECK(site.me.release(readers[0]) == release_result::released);
    CHECK(site.clean());
    CHECK(take_as(as::owner, site.other).held());
}

TEST_CASE("shared mutex: an owner excludes readers, also after it has waited for some") {
    reading_site site;
    lock first = take_as(as::owner, site.me, with_token());
    CHECK(try_as(as::reader, site.other)->error == errc::contended);
    CHECK(site.me.extend(first, 20s) == error_code());
    CHECK(try_as(as::reader, site.me)->error == errc::contended);
    CHECK(site.me.release(first) == release_result::released);
    CHECK(site.clean());
    lock reader = take_as(as::reader, site.me);
    const acquisition_ptr waits = begin_as(as::owner, site.other, with_token(waiting(20s)));
    CHECK(site.eventually([&] { return exists(site.masters[0], intent_key); }));
    CHECK(site.me.release(reader) == release_result::released);
    REQUIRE(site.other.gets(waits));
    CHECK(token_of(waits->lock) > token_of(first));
    CHECK(site.other.extend(waits->lock, 20s) == error_code());
    CHECK(try_as(as::reader, site.me)->error == errc::contended);
    CHECK(site.other.release(waits->lock) == release_result::released);
    CHECK(site.clean());
}

TEST_CASE("shared mutex: a downgrade lets readers in and no writer, in the same lock") {
    reading_site site;
    lock held = take_as(as::owner, site.me, with_token());
    const std::string token(held.secret());
    const acquisition_ptr reader = begin_as(as::reader, site.other, waiting(20s));
    site.pass(50ms);
    CHECK(!reader->done);
    CHECK(downgrade(held, site.io) == error_code());
    CHECK(held.held());
    CHECK(held.secret() == token);
    REQUIRE(site.other.gets(reader));
    const acquisition_ptr writer = begin_as(as::owner, site.me, waiting(60s));
    CHECK(site.me.extend(held, 10s) == error_code());
    CHECK(downgrade(held, site.io) == errc::invalid_argument); // it reads already
    CHECK(site.eventually([&] {
        return site.masters[0].command({"GET", lock_key("r")}) == "readers";
    }));
    CHECK(site.me.release(held) == release_result::released);
    site.pass(50ms);
    CHECK(!writer->done);
    CHECK(site.other.release(reader->lock) == release_result::released);
    CHECK(site.me.gets(writer));
}

TEST_CASE(
    "at maxmemory each lock lives on, is lowered, healed and released; new ones are refused") {
    reading_site site;
    const acquire_options brief = once(2s);
    std::vector<lock> held;
    held.push_back(take_as(as::reader, site.me, brief));
    held.push_back(site.me.take("plain", brief));
    held.push_back(site.me.take("fenced", with_token(brief)));
    held.push_back(granted(site.me.finish(begin_as(as::owner, site.me, with_token(brief), "w"))));
    held.push_back(granted(site.me.finish(begin_as(as::owner, site.me, brief, "lowered"))));
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].command({"CONFIG", "SET", "maxmemory", "100kb"});
    }
    for (const char* const name : {"plain", "fenced", "w"}) {
        site.masters[0].command({"DEL", lock_key(name), fence_key_of(name)});
    }
    site.masters[0].command({"DEL", readers_key});
    CHECK(downgrade(held.back(), site.io) == error_code());
    site.pass(4500ms);
    for (const lock& one : held) {
        INFO(one.resource());
        CHECK(one.held());
    }
    CHECK(site.readers_on(0) == 1);
    CHECK(exists(site.masters[0], lock_key("plain")));
    CHECK(counter_on(site.masters[0], "fenced") == token_of(held[2]));
    CHECK(counter_on(site.masters[0], "w") == token_of(held[3]));

    std::vector<acquisition_ptr> refused{
        site.other.acquire("new"),
        site.other.acquire("new", with_token()),
        site.other.finish(begin_as(as::reader, site.other, once(), "r")),
        site.other.finish(begin_as(as::owner, site.other, once(), "new"))};
    for (const acquisition_ptr& one : refused) {
        INFO(one->explained());
        CHECK(*one == errc::no_quorum);
        CHECK(contains(to_string(one->why), "OOM"));
    }
    for (lock& one : held) {
        INFO(one.resource());
        CHECK(site.me.release(one) == release_result::released);
    }
    CHECK(site.clean());
}

TEST_CASE("shared mutex: only an exclusive lock of one resource can be downgraded") {
    reading_site site;
    lock several = granted(try_several(site.me, {"r", "s"}));
    CHECK(downgrade(several, site.io) == errc::invalid_argument);
    CHECK(several.held());
    CHECK(site.me.release(several) == release_result::released);
    lock gone = take_as(as::owner, site.me);
    CHECK(site.me.release(gone) == release_result::released);
    CHECK(downgrade(gone, site.io) == errc::released);
}

TEST_CASE("shared mutex: readers of one process wait for the writer, and not for each other") {
    reading_site site(3, woken_or_never);
    lock writer = take_as(as::owner, site.other, once(30s));
    std::vector<acquisition_ptr> readers;
    for (int i = 0; i < 10; ++i) {
        readers.push_back(begin_as(as::reader, site.me, waiting(1h, 30s)));
    }
    run_until(site.io, [&] { return site.me.count().notification_connections == 3; });
    site.pass(100ms);
    CHECK(site.other.release(writer) == release_result::released);
    run_until(site.io, [&] {
        return std::all_of(
            readers.begin(), readers.end(), [](const acquisition_ptr& one) { return one->done; });
    });
    for (const acquisition_ptr& one : readers) {
        INFO(one->explained());
        CHECK(one->lock.held()); // all at once
    }
    CHECK(site.me.count().subscriptions == 0);
}

TEST_CASE("shared mutex: a writer is woken by the last reader, and readers by the writer") {
    reading_site site(3, [](config& c) {
        woken_or_never(c);
        c.master_timeout = 20s; // a writer asks again after 40 s
    });
    lock one = take_as(as::reader, site.me, once(30s));
    lock two = take_as(as::reader, site.me, once(30s));
    const acquisition_ptr writer = begin_as(as::owner, site.other, waiting(1h, 30s));
    run_until(site.io, [&] { return site.other.count().notification_connections == 3; });
    site.pass(100ms);
    CHECK(site.me.release(one) == release_result::released);
    site.pass(100ms);
    CHECK(!writer->done);
    CHECK(site.me.release(two) == release_result::released);
    REQUIRE(site.other.gets(writer));
    CHECK(!exists(site.masters[0], intent_key));
}

TEST_CASE("shared mutex: a stream of readers does not starve a writer") {
    reading_site site;
    lock first = take_as(as::reader, site.me);
    const acquisition_ptr writer = begin_as(as::owner, site.other, waiting(60s));
    CHECK(site.eventually([&] { return exists(site.masters[0], intent_key); }));
    // From now on new readers are refused, so that the writer waits only for the present ones.
    std::vector<acquisition_ptr> late;
    for (int i = 0; i < 5; ++i) {
        late.push_back(begin_as(as::reader, site.me, waiting(60s)));
    }
    CHECK(try_as(as::reader, site.me)->error == errc::contended);
    CHECK(site.me.extend(first, 10s) == error_code()); // a reader continues
    site.pass(3s); // longer than the word that it left is kept without being repeated
    CHECK(try_as(as::reader, site.me)->error == errc::contended);
    CHECK(!writer->done);
    CHECK(site.me.release(first) == release_result::released);
    REQUIRE(site.other.gets(writer));
    for (const acquisition_ptr& one : late) {
        CHECK(!one->done);
    }
    CHECK(site.other.release(writer->lock) == release_result::released);
    for (const acquisition_ptr& one : late) {
        CHECK(site.me.gets(one));
    }
}

TEST_CASE("shared mutex: a writer that gave up keeps no reader out") {
    reading_site site(3, [](config& c) {
        guarded(c);
        c.master_timeout = 1h; // an intent is kept for 4 h
        c.max_ttl = 24h;
    });
    lock first = take_as(as::reader, site.me);
    const acquisition_ptr writer = begin_as(as::owner, site.other, waiting(24h));
    CHECK(site.eventually([&] { return exists(site.masters[1], intent_key); }));
    const bool waits = GENERATE(false, true);
    acquisition_ptr reader;
    if (waits) {
        reader = begin_as(as::reader, site.me, waiting(24h));
        run_until(site.io, [&] { return site.me.count().notification_connections == 3; });
    }
    site.other.cancel(writer);
    CHECK(writer->error == asio::error::operation_aborted);
    CHECK(site.eventually([&] { return site.masters.total_keys(intent_key) == 0; }));
    if (!waits) {
        reader = begin_as(as::reader, site.me);
    }
    CHECK(site.me.gets(reader));
    CHECK(first.held());
}

TEST_CASE("shared mutex: a writer that gives up again and again does not starve readers") {
    reading_site site;
    lock first = take_as(as::reader, site.me);
    for (int i = 0; i < 5; ++i) {
        const acquisition_ptr writer = begin_as(as::owner, site.other, waiting(24h));
        CHECK(site.eventually([&] { return site.masters.total_keys(intent_key) == 3; }));
        site.other.cancel(writer);
        CHECK(writer->error == asio::error::operation_aborted);
        CHECK(site.eventually([&] { return site.masters.total_keys(intent_key) == 0; }));
        lock reader = take_as(as::reader, site.me);
        CHECK(site.me.release(reader) == release_result::released);
    }
}

TEST_CASE("shared mutex: a writer that gives up leaves the intent of another that waits") {
    reading_site site;
    lock first = take_as(as::reader, site.me);
    const acquisition_ptr gives_up = begin_as(as::owner, site.other, waiting(24h));
    CHECK(site.eventually([&] { return site.masters.total_keys(intent_key) == 3; }));
    const acquisition_ptr waits = begin_as(as::owner, site.me, waiting(24h));
    const std::string before = site.masters[0].command({"GET", intent_key});
    CHECK(site.eventually([&] { return site.masters[0].command({"GET", intent_key}) != before; }));
    site.other.cancel(gives_up);
    CHECK(site.eventually([&] { return site.masters.total_keys(intent_key) == 3; }));
    CHECK(try_as(as::reader, site.other)->error == errc::contended);
    CHECK(site.me.release(first) == release_result::released);
    CHECK(site.me.gets(waits));
    CHECK(site.me.release(waits->lock) == release_result::released);
    CHECK(site.eventually([&] { return site.masters.total_keys(intent_key) == 0; }));
}

TEST_CASE("shared mutex: a reader that died keeps writers out for no longer than its lease") {
    reading_site site;
    lock dies = take_as(as::reader, site.me, once_unrenewed(700ms));
    lock lives = take_as(as::reader, site.me, once(700ms));
    dies.abandon();
    const acquisition_ptr writer = begin_as(as::owner, site.other, waiting(60s));
    site.pass(1500ms);
    CHECK(!writer->done); // the one that lives is renewed
    CHECK(site.me.release(lives) == release_result::released);
    CHECK(site.other.gets(writer));
}

TEST_CASE("shared mutex: an upgrade is refused, as it would wait for itself") {
    reading_site site;
    lock reader = take_as(as::reader, site.me);
    CHECK(try_as(as::owner, site.me)->error == errc::contended);
    const acquisition_ptr waits = try_as(as::owner, site.me, waiting(2s));
    CHECK(waits->error == errc::contended);
    CHECK(reader.held());
    CHECK(site.me.extend(reader, 10s) == error_code());
}

TEST_CASE("shared mutex: readers on AB, BC and AC share, and no writer finds a majority") {
    quorum_of_masters masters(3);
    config settings = config_for(masters.urls());
    settings.protocol = protocol::guarded;
    settings.master_timeout = 300ms;
    asio::io_context io;
    std::vector<std::unique_ptr<client>> clients;
    std::vector<lock> readers;
    // Each has a majority of its own: the third master of each hangs while it asks.
    for (std::size_t away = 0; away < 3; ++away) {
        clients.push_back(std::make_unique<client>(io, settings, 3));
        masters[away].hang();
        // What it asked of the third is taken back by the connection's end: it never arrives.
        readers.push_back(take_as(as::reader, *clients.back(), once_unrenewed(20s)));
        for (const auto& one : clients) {
            run_until(io, [&] { return one->health().admitted == 2; });
        }
        masters[away].kill();
        masters[away].restart();
        for (const auto& one : clients) {
            one->until_admitted(3);
        }
        // It restarted without its memory, which each of these has no vote to spare for.
        for (std::size_t i = 0; i < readers.size(); ++i) {
            if (i != away) {
                masters[away].command({"SET", lock_key("r"), "readers", "PX", "600000"});
                masters[away].command(
                    {"ZADD", readers_key, "9999999999999", std::string(readers[i].secret())});
                CHECK(clients[i]->extend(readers[i], 20s) == error_code());
            }
        }
    }
    for (const lock& one : readers) {
        CHECK(one.held());
    }
    client writer(io, settings, 3);
    CHECK(try_as(as::owner, writer)->error == errc::contended);
    CHECK(clients[0]->release(readers[0]) == release_result::released);
    CHECK(clients[1]->release(readers[1]) == release_result::released);
    CHECK(try_as(as::owner, writer)->error == errc::contended);
    CHECK(clients[2]->release(readers[2]) == release_result::released);
    const acquisition_ptr got = try_as(as::owner, writer, waiting(20s));
    INFO(got->explained());
    CHECK(got->lock.held());
}

TEST_CASE(
    "shared mutex: a split that shows reader and writer different minorities gives it to neither") {
    reading_site site(4);
    // Of four, three are a majority. Two are the reader's, two the writer's.
    for (std::size_t i = 0; i < 2; ++i) {
        site.masters[i].command({"SET", lock_key("r"), "readers", "PX", "60000"});
        site.masters[i].command({"ZADD", readers_key, "9999999999999", "somebody"});
        site.masters[2 + i].command({"SET", lock_key("r"), "somebody", "PX", "60000"});
    }
    CHECK(try_as(as::reader, site.me)->error == errc::contended);
    CHECK(try_as(as::owner, site.other)->error == errc::contended);
    CHECK(site.eventually([&] { return site.readers_on(0) == 1 && site.readers_on(1) == 1; }));
    CHECK(site.masters[0].command({"GET", lock_key("r")}) == "readers"); // all was undone
}

TEST_CASE("shared mutex: a late release and a late extension change nothing for later owners") {
    quorum_fixture site(3, guarded);
    asio::io_context stopped; // between its calls this process does not run, as if it were paused
    client paused(stopped, site.changed(guarded), 3);
    lock late = take_as(as::reader, paused, once_unrenewed(300ms));
    lock writer = take_as(as::owner, site.me, waiting(30s));
    CHECK(!late.held());
    CHECK(paused.release(late) != release_result::released);
    CHECK(writer.held());
    CHECK(try_as(as::reader, paused)->error == errc::contended);
    CHECK(site.me.release(writer) == release_result::released);

    lock overdue = take_as(as::reader, paused, once_unrenewed(300ms));
    writer = take_as(as::owner, site.me, waiting(30s));
    CHECK(paused.extend(overdue, 10s) == errc::lost);
    CHECK(writer.held());
    CHECK(site.me.extend(writer, 10s) == error_code());
    CHECK(site.me.release(writer) == release_result::released);
    for (const master_process& master : site.masters) {
        CHECK(master.command({"ZCARD", readers_key}) == "0");
    }
}

TEST_CASE("shared mutex: votes that are deleted on a majority are not put back") {
    for (const as kind : {as::reader, as::owner}) {
        reading_site site;
        lock mine = site.with_all_votes([&] { return take_as(kind, site.me); });
        for (const std::size_t i : {0U, 1U}) {
            site.masters[i].command({"DEL", readers_key, lock_key("r")});
        }
        CHECK(extended(site.me, mine) == errc::lost);
        CHECK(!mine.held());
        for (const std::size_t i : {0U, 1U}) {
            CHECK(site.masters[i].command({"EXISTS", readers_key, lock_key("r")}) == "0");
        }
    }
}

TEST_CASE("shared mutex: votes that a master lost are healed, except next to the other kind") {
    reading_site site;
    // With the third vote still out, the two that are left would be no majority.
    lock reader = site.with_all_votes([&] { return take_as(as::reader, site.me); });
    site.masters[2].command({"DEL", readers_key});
    CHECK(site.me.extend(reader, 10s) == error_code());
    CHECK(site.eventually([&] { return site.readers_on(2) == 1; }));
    site.masters[2].command({"DEL", readers_key});
    site.masters[2].command({"SET", lock_key("r"), "somebody", "PX", "60000"});
    CHECK(site.me.extend(reader, 10s) == error_code());
    site.pass(50ms);
    CHECK(site.readers_on(2) == 0);
    site.masters[2].command({"DEL", lock_key("r")});
    CHECK(site.me.release(reader) == release_result::released);

    lock writer = site.with_all_votes([&] { return take_as(as::owner, site.me); });
    site.masters[2].command({"SET", lock_key("r"), "readers", "PX", "60000"});
    CHECK(site.me.extend(writer, 10s) == error_code());
    site.pass(50ms);
    CHECK(site.masters[2].command({"GET", lock_key("r")}) == "readers");
    site.masters[2].command({"DEL", lock_key("r")});
    CHECK(site.me.extend(writer, 10s) == error_code());
    CHECK(site.eventually([&] {
        return site.masters[2].command({"GET", lock_key("r")}) == writer.secret();
    }));
}

}} // namespace redlock::test
