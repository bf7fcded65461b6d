// TLS: which server is trusted, and which is not.
#include "quorum_fixture.hpp"

namespace redlock::test { namespace {

struct tls_site {
    explicit tls_site(bool auth_clients = false) : masters(3, options_of(auth_clients)) {}

    static master_options options_of(bool auth_clients) {
        master_options options;
        options.tls = true;
        options.tls_auth_clients = auth_clients;
        return options;
    }

    const tls_files& files() const { return masters[0].certificates(); }

    config settings(const std::string& host = "localhost") const {
        std::vector<std::string> urls;
        for (std::size_t i = 0; i < masters.size(); ++i) {
            urls.push_back("rediss://" + host + ":" + std::to_string(masters[i].tls_port()));
        }
        config result = config_for(urls);
        result.tls.ca_file = files().ca().string();
        return result;
    }

    void accepts(const config& settings) {
        client me(io, settings, 3);
        lock mine = me.take("r");
        CHECK(me.extend(mine, 20s) == error_code());
        CHECK(me.release(mine) == release_result::released);
    }

    void refuses(const config& settings, const std::string& reason) {
        client me(io, settings);
        me.until_each(is_down);
        const acquisition_ptr got = me.acquire("r");
        INFO(got->explained());
        INFO(to_string(me.health()));
        CHECK(got->error == errc::no_quorum);
        CHECK(me.health().admitted == 0);
        CHECK(contains(me.health().masters[0].text, reason));
        CHECK(me.count().masters[0].commands == 0); // not a word was said to a stranger
    }

    asio::io_context io;
    quorum_of_masters masters;
};

TEST_CASE("masters whose certificate names the host and comes from our authority are trusted") {
    tls_site site;
    SECTION("by name") {
        site.accepts(site.settings());
    }
    SECTION("by address") {
        site.accepts(site.settings("127.0.0.1"));
    }
    SECTION("under a name that is given apart") {
        config settings = site.settings("127.0.0.1");
        settings.tls.server_name = "localhost";
        site.accepts(settings);
    }
}

TEST_CASE("a certificate of another authority is refused") {
    tls_site site;
    config settings = site.settings();
    settings.tls.ca_file = site.files().other_ca().string();
    site.refuses(settings, "certificate verify failed");
    SECTION("unless nothing is verified") {
        settings.tls.verify = false;
        site.accepts(settings);
    }
}

TEST_CASE("a certificate that does not name the host is refused") {
    tls_site site;
    config settings = site.settings();
    settings.tls.server_name = "redis.example.com";
    site.refuses(
        settings, "certificate verify failed (SSL routines): it does not name 'redis.example.com'");
}

TEST_CASE("the system's authorities do not vouch for our own") {
    tls_site site;
    config settings = site.settings();
    settings.tls.ca_file.clear();
    site.refuses(settings, "certificate verify failed");
}

TEST_CASE("masters that ask for the client's certificate get it") {
    tls_site site(true);
    config settings = site.settings();
    settings.tls.certificate_file = site.files().client_certificate().string();
    settings.tls.private_key_file = site.files().client_key().string();
    site.accepts(settings);
}

TEST_CASE("masters that ask for the client's certificate refuse one without, or of strangers") {
    tls_site site(true);
    config settings = site.settings();
    SECTION("without") {}
    SECTION("of strangers") {
        settings.tls.certificate_file = site.files().other_client_certificate().string();
        settings.tls.private_key_file = site.files().other_client_key().string();
    }
    client me(site.io, settings);
    me.until_each(is_down);
    CHECK(me.count().acquired == 0);
    const acquisition_ptr got = me.acquire("r");
    CHECK(*got == errc::no_quorum);
    CHECK(me.health().admitted == 0);
}

TEST_CASE("a TLS client on a port without TLS says that the handshake failed") {
    quorum_of_masters masters(1);
    asio::io_context io;
    config settings = config_for({"rediss://localhost:" + std::to_string(masters[0].port())});
    settings.connect_timeout = 300ms; // the server waits for the end of a line
    client me(io, settings);
    me.until_each(is_down);
    INFO(me.health().masters[0].text);
    CHECK(me.acquire("r")->error == errc::no_quorum);
}

TEST_CASE("a file that cannot be used is refused at construction, by its name") {
    asio::io_context io;
    config settings = config_for({"rediss://localhost:1"});
    settings.tls.ca_file = "/nonexistent/ca.pem";
    try {
        const lock_manager manager(io.get_executor(), settings);
        FAIL("accepted");
    } catch (const std::invalid_argument& refused) {
        CHECK(contains(std::string(refused.what()), "/nonexistent/ca.pem"));
    }
}

TEST_CASE("a TLS master that is restarted is trusted again, and a hung one is not waited for") {
    tls_site site;
    config settings = site.settings();
    settings.master_timeout = 500ms;
    client me(site.io, settings, 3);
    site.masters[0].restart();
    site.masters[1].hang();
    const acquisition_ptr got = me.acquire("r", waiting(20s));
    REQUIRE(*got);
    CHECK(me.release(got->lock) == release_result::released);
    site.masters[1].resume();
    me.until_admitted(3);
    run_until(site.io, [&] { return site.masters.total_keys() == 0; });
}

}} // namespace redlock::test
