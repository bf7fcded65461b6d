// A lock is passed from one client to another by its token: against real masters, in both
// protocols.
#include "guarded_quorum.hpp"

#include <catch2/generators/catch_generators.hpp>

// In a namespace of its own: short names, in what may be compiled as one with other files.
namespace redlock::test::attaching {

namespace {

// A second client next to that of the fixture, as in another process.
struct other_client {
    explicit other_client(const quorum_fixture& site)
        : me(io, site.changed(change), site.masters.size()) {}

    acquisition_ptr
    attach(std::string resource, std::string token, acquire_options options = once()) {
        return me.finish(begun([&](auto handler) {
            me.manager().async_attach(
                std::move(resource), std::move(token), options, std::move(handler));
        }));
    }

    static void change(config& c) { c.protocol = wanted; }
    static inline protocol wanted = protocol::plain;

    asio::io_context io;
    client me;
};

void either_protocol() {
    other_client::wanted = GENERATE(protocol::plain, protocol::guarded);
    INFO(to_string(other_client::wanted));
}

std::string token_in(const redlock::lock& held) {
    return std::string(held.secret());
}

// Whether no master is left with the lock.
bool gone(quorum_fixture& site, const std::string& resource) {
    return site.eventually([&] {
        return std::ranges::none_of(site.masters, [&](const master_process& master) {
            return exists(master, lock_key(resource));
        });
    });
}

} // namespace

TEST_CASE("a lock that is abandoned lives on with the client that attaches to it") {
    either_protocol();
    quorum_fixture site(3, other_client::change);
    other_client other(site);
    redlock::lock mine = site.take_everywhere("r", once_unrenewed(3s));
    const std::string token = token_in(mine);
    mine.abandon();
    const acquisition_ptr theirs = other.attach("r", token);
    REQUIRE(*theirs);
    CHECK(theirs->lock.held());
    CHECK(theirs->lock.secret() == token);
    CHECK(theirs->lock.remaining() > 8s);
    CHECK(site.me.acquire("r")->error == errc::contended);
    CHECK(other.me.extend(theirs->lock, 20s) == error_code());
    CHECK(other.me.release(theirs->lock) == release_result::released);
    CHECK(gone(site, "r"));
    CHECK(!site.me.acquire("r")->error);
}

TEST_CASE("attaching to a lock that was released, or never existed, ends with lost") {
    either_protocol();
    quorum_fixture site(3, other_client::change);
    other_client other(site);
    redlock::lock mine = site.me.take("r");
    const std::string token = token_in(mine);
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(site.settled());
    const acquisition_ptr theirs = other.attach("r", token);
    CHECK(theirs->error == errc::lost);
    CHECK(count_votes(theirs->why, vote::absent) >= 2);
    CHECK(!theirs->lock.valid());
    for (const master_process& master : site.masters) {
        CHECK(master.command({"EXISTS", lock_key("r")}) == "0"); // nothing is put back
    }
}

TEST_CASE("attaching to a lock that another owner has by now fails, and the owner keeps it") {
    either_protocol();
    quorum_fixture site(3, other_client::change);
    other_client other(site);
    redlock::lock first = site.me.take("r");
    const std::string token = token_in(first);
    CHECK(site.me.release(first) == release_result::released);
    redlock::lock second = site.take_everywhere("r");
    const acquisition_ptr theirs = other.attach("r", token);
    CHECK(theirs->error == errc::lost);
    CHECK(count_votes(theirs->why, vote::owned_by_other) >= 2);
    CHECK(second.held());
    CHECK(site.me.release(second) == release_result::released);
}

TEST_CASE(
    "after a local handoff the fencing token is larger, and larger again for the next owner") {
    other_client::wanted = protocol::guarded;
    quorum_fixture site(3, other_client::change);
    other_client other(site);
    redlock::lock mine = site.take_everywhere("r", with_token());
    const std::uint64_t first = token_of(mine);
    const std::string token = token_in(mine);
    mine.abandon();
    const acquisition_ptr theirs = other.attach("r", token, with_token());
    REQUIRE(*theirs);
    const std::uint64_t second = token_of(theirs->lock);
    CHECK(second > first);
    std::size_t counted = 0;
    for (const master_process& master : site.masters) {
        counted += counter_on(master, "r") == second ? 1U : 0U;
    }
    CHECK(counted >= 2);
    CHECK(other.me.release(theirs->lock) == release_result::released);
    redlock::lock next = site.me.take("r", with_token());
    CHECK(token_of(next) > second);
}

TEST_CASE("a token of another form is refused before anything is sent") {
    quorum_fixture site(1);
    other_client::wanted = site.changed([](config&) {}).protocol;
    other_client other(site);
    const std::string token = GENERATE(
        std::string(), std::string(39, 'a'), std::string(40, 'A'), std::string(39, 'a') + "\n");
    const acquisition_ptr result = other.attach("r", token);
    CHECK(result->error == errc::invalid_argument);
    CHECK(contains(result->why.message, "hexadecimal digits"));
    CHECK(other.me.count().attempts == 0);
}

} // namespace redlock::test::attaching
