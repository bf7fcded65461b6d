// How the bytes travel: TCP over IPv4 and IPv6, Unix sockets, one connection whatever the load.
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

std::size_t connections_named(const master_process& master, const std::string& name) {
    const std::string list = master.command({"CLIENT", "LIST"});
    std::size_t found = 0;
    for (std::size_t at = 0; (at = list.find("name=" + name + " ", at)) != std::string::npos;
         ++at) {
        ++found;
    }
    return found;
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

TEST_CASE("a name that cannot be resolved is a vote, and delays no acquire") {
    quorum_of_masters masters(2);
    std::vector<std::string> urls = masters.urls();
    urls.push_back("redis://no-such-host.invalid:6379");
    asio::io_context io;
    client me(io, config_for(urls));
    lock_and_release(me, 2);
    const acquisition_ptr got = me.acquire("r");
    CHECK(!got->error);
    CHECK(got->why.votes[2].vote == vote::unreachable);
    CHECK_FALSE(me.health().masters[2].text.empty());
}

TEST_CASE("masters are reached over Unix sockets") {
    master_options options;
    options.unix_socket = true;
    quorum_of_masters masters(3, options);
    std::vector<std::string> urls;
    for (const master_process& master : masters) {
        urls.push_back(master.unix_url());
    }
    asio::io_context io;
    client me(io, config_for(urls));
    lock_and_release(me, 3);

    lock mine = me.take("r", once(30s));
    masters[0].restart();
    masters[1].restart();
    me.until_admitted(3); // a socket file is found again as well
    CHECK(mine.held());
}

TEST_CASE("one quorum may mix TCP, TLS and Unix sockets") {
    master_options options;
    options.tls = true;
    options.unix_socket = true;
    quorum_of_masters masters(3, options);
    asio::io_context io;
    config settings = config_for({masters[0].url(), masters[1].tls_url(), masters[2].unix_url()});
    settings.tls.ca_file = masters[0].certificates().ca().string();
    client me(io, settings);
    lock_and_release(me, 3);
}

TEST_CASE("one server reached over TCP and over its Unix socket counts once") {
    master_options options;
    options.unix_socket = true;
    quorum_of_masters masters(2, options);
    asio::io_context io;
    client me(io, config_for({masters[0].url(), masters[0].unix_url(), masters[1].url()}));
    until_duplicate(io, me, 2);
    lock_and_release(me, 2);
}

TEST_CASE("there is one connection to each master, whatever the number of locks") {
    quorum_fixture site(3, [](config& c) { c.client_name = "only-one"; });
    std::vector<acquisition_ptr> all;
    for (int i = 0; i < 500; ++i) {
        all.push_back(site.me.begin("r" + std::to_string(i)));
    }
    for (const acquisition_ptr& one : all) {
        REQUIRE(*site.me.finish(one));
    }
    CHECK(site.me.count().held == 500);
    for (const master_process& master : site.masters) {
        CHECK(connections_named(master, "only-one") == 1);
    }
    for (const master_metrics& one : site.me.count().masters) {
        CHECK(one.connects == 1);
        CHECK(one.disconnects == 0);
    }
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

TEST_CASE("a connection that is cut is made again, and locks are still held") {
    quorum_fixture site(3);
    lock mine = site.me.take("r", once(30s));
    for (std::uint64_t round = 0; round < 3; ++round) {
        site.everywhere({"CLIENT", "KILL", "TYPE", "normal"});
        run_until(site.io, [&] {
            const metrics now = site.me.count();
            return std::ranges::all_of(
                now.masters, [&](const auto& one) { return one.disconnects > round; });
        });
        site.me.until_admitted(3);
        CHECK(mine.held());
        CHECK(!site.me.acquire("other")->error);
    }
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(site.no_key_left());
    CHECK(site.settled());
}

}} // namespace redlock::test
