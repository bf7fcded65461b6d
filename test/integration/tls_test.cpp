// TLS: which server is trusted, and which is not.
#include "quorum_fixture.hpp"

#include <sys/stat.h>

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
    const temp_dir dir;
    std::string named = "/nonexistent/file";
    SECTION("that does not exist") {
        settings.tls.ca_file = named;
    }
    SECTION("a password that does not exist") {
        settings.password_file = named;
    }
    SECTION("a directory") {
        settings.password_file = named = "/";
    }
    SECTION("a pipe without a writer") {
        settings.password_file = named = (dir.path() / "pipe").string();
        REQUIRE(::mkfifo(named.c_str(), 0600) == 0);
    }
    try {
        const lock_manager manager(io.get_executor(), settings);
        FAIL("accepted");
    } catch (const std::invalid_argument& refused) {
        CHECK(contains(std::string(refused.what()), "'" + named + "'"));
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

TEST_CASE("authority, certificate, key and password are replaced while a manager holds a lock") {
    tls_site site(true);
    const tls_files next;
    const temp_dir mine;
    const auto write = [&](const char* name, const std::string& text) {
        std::ofstream(mine.path() / name, std::ios::trunc) << text;
        return (mine.path() / name).string();
    };
    const auto everywhere = [&](const std::vector<std::string>& command) {
        for (const master_process& master : site.masters) {
            REQUIRE(master.command(command).find("ERR") == std::string::npos);
        }
    };
    everywhere({"ACL", "SETUSER", "locker", "on", ">first", "~*", "&*", "+@all"});
    config settings = site.settings();
    settings.tls.ca_file = write("ca", text_of(site.files().ca()));
    settings.tls.certificate_file =
        write("certificate", text_of(site.files().client_certificate()));
    settings.tls.private_key_file = write("key", text_of(site.files().client_key()));
    settings.username = "locker";
    settings.password_file = write("password", "first\r\nand not this\n");
    settings.reconnect_delay_max = 200ms;
    settings.max_ttl = 120s;
    client me(site.io, settings, 3);
    acquire_options options = once();
    options.ttl = 120s; // longer than all that follows
    lock held = me.take("r", options);

    everywhere({"ACL", "SETUSER", "locker", ">second"});
    everywhere(
        {"CONFIG",
         "SET",
         "tls-cert-file",
         next.server_certificate().string(),
         "tls-key-file",
         next.server_key().string(),
         "tls-ca-cert-file",
         next.ca().string()});
    const std::string ca = text_of(next.ca());
    const auto says = [&](const std::string& part) {
        everywhere({"CLIENT", "KILL", "USER", "locker", "SKIPME", "yes"});
        me.until_each([&](const master_health& one) { return contains(one.text, part); });
        CHECK(held.held());
    };
    write("ca", ca.substr(0, ca.size() / 2)); // as a reader may find it
    says("cannot use tls.ca_file '" + settings.tls.ca_file);
    write("ca", ca);
    write("certificate", text_of(next.client_certificate()));
    says("cannot use tls.private_key_file '" + settings.tls.private_key_file);
    std::filesystem::remove(settings.tls.private_key_file);
    says("cannot use tls.private_key_file '" + settings.tls.private_key_file);
    write("key", text_of(next.client_key()));
    write("password", "\n");
    says("cannot use password_file '" + settings.password_file + "': its first line is empty");
    write("password", "second");
    me.until_admitted(3);
    CHECK(me.extend(held, 20s) == error_code());

    everywhere({"ACL", "SETUSER", "locker", "<first"});
    everywhere({"CLIENT", "KILL", "USER", "locker", "SKIPME", "yes"});
    run_until(site.io, [&] { return me.health().admitted == 0; });
    me.until_admitted(3);
    CHECK(me.release(held) == release_result::released);
}

}} // namespace redlock::test
