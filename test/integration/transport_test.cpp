// How the bytes travel: TCP over IPv4 and IPv6, TLS, Unix sockets, and to which database.
#include "quorum_fixture.hpp"

#include <boost/asio/ip/tcp.hpp>

namespace redlock::test { namespace {

void lock_and_release(client& me, std::size_t masters) {
    me.until_admitted(masters);
    lock mine = me.take("r");
    CHECK(me.extend(mine, 20s) == error_code());
    CHECK(me.release(mine) == release_result::released);
}

bool has_ipv6_loopback() {
    asio::io_context io;
    boost::system::error_code error;
    asio::ip::tcp::acceptor acceptor(io);
    acceptor.open(asio::ip::tcp::v6(), error);
    if (!error) {
        acceptor.bind({asio::ip::address_v6::loopback(), 0}, error);
    }
    return !error;
}

TEST_CASE("masters are reached over IPv6") {
    if (!has_ipv6_loopback()) {
        SKIP("no IPv6 loopback here");
    }
    master_options options;
    options.bind = "::1";
    quorum_fixture site(
        3, [](config&) {}, options);
    lock_and_release(site.me, 3);
    CHECK(site.me.health().masters[0].endpoint.starts_with("[::1]:"));
}

TEST_CASE("one quorum may mix TCP, TLS and Unix sockets, and finds a socket file again") {
    master_options options;
    options.tls = true;
    options.unix_socket = true;
    quorum_of_masters masters(3, options);
    asio::io_context io;
    config settings = config_for({masters[0].url(), masters[1].tls_url(), masters[2].unix_url()});
    settings.tls.ca_file = masters[0].certificates().ca().string();
    client me(io, settings);
    lock_and_release(me, 3);
    masters[2].restart();
    run_until(io, [&] { return me.count().masters[2].connects == 2; });
    lock_and_release(me, 3);
}

TEST_CASE("locks are in the database that the URL names, and a missing one is a vote") {
    quorum_of_masters masters(1);
    asio::io_context io;
    client me(io, config_for({masters[0].url() + "/3"}), 1);
    const lock mine = me.take("r");
    CHECK(masters.total_keys() == 0); // in database 0
    resp_client third("127.0.0.1", masters[0].port());
    CHECK(third.command({"SELECT", "3"}) == "OK");
    CHECK(third.command({"DBSIZE"}) == "1");
    client nowhere(io, config_for({masters[0].url() + "/99"}));
    nowhere.until_each(is_down);
    const acquisition_ptr refused = nowhere.acquire("r");
    CHECK(*refused == errc::no_quorum);
    CHECK(contains(refused->why.votes[0].text, "DB index"));
}

TEST_CASE("what a socket does not take at once arrives whole and in order") {
    master_options options;
    options.unix_socket = true; // its buffers are small and do not grow
    quorum_of_masters masters(3, options);
    asio::io_context io;
    config settings = config_for({masters[0].unix_url(), masters[1].unix_url(), masters[2].url()});
    settings.master_timeout = 60s;
    client me(io, settings, 3);
    const std::string long_name(900, 'n');
    std::vector<acquisition_ptr> all;
    for (int i = 0; i < 2000; ++i) { // in one turn of the loop: 2 MB for each master
        all.push_back(me.begin(long_name + std::to_string(i), once(30s)));
    }
    for (const acquisition_ptr& one : all) {
        me.finish(one);
        REQUIRE(*one);
    }
    for (const acquisition_ptr& one : all) {
        one->lock = {};
    }
    run_until(io, [&] { return masters.total_keys() == 0; });
    for (const master_metrics& one : me.count().masters) {
        CHECK(one.disconnects == 0);
    }
}

}} // namespace redlock::test
