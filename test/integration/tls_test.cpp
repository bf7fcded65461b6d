// TLS: which server is trusted, and which is not.
#include "quorum_fixture.hpp"

#include <sys/stat.h>

#include <fstream>

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

    // With a reason if it is the client that refuses.
    void refuses(const config& settings, const std::string& reason = "") {
        client me(io, settings);
        me.until_each(is_down);
        const acquisition_ptr got = me.acquire("r");
        INFO(got->explained());
        INFO(to_string(me.health()));
        CHECK(got->error == errc::no_quorum);
        CHECK(me.health().admitted == 0);
        CHECK(contains(me.health().masters[0].text, reason));
        CHECK((reason.empty() || me.count().masters[0].commands == 0)); // not a word to a stranger
    }

    asio::io_context io;
    quorum_of_masters masters;
};

TEST_CASE("masters whose certificate names the host and comes from our authority are trusted") {
    tls_site site;
    site.accepts(site.settings());
    config by_address = site.settings("127.0.0.1");
    site.accepts(by_address);
    by_address.tls.server_name = "localhost"; // given apart
    site.accepts(by_address);
}

TEST_CASE("a certificate of another authority, or with another name, is refused") {
    tls_site site;
    config settings = site.settings();
    settings.tls.ca_file.clear(); // the system's authorities do not vouch for our own
    site.refuses(settings, "certificate verify failed");
    settings.tls.ca_file = site.files().other_ca().string();
    site.refuses(settings, "certificate verify failed");
    settings.tls.verify = false;
    site.accepts(settings);
    settings = site.settings();
    settings.tls.server_name = "redis.example.com";
    site.refuses(
        settings, "certificate verify failed (SSL routines): it does not name 'redis.example.com'");
}

TEST_CASE("masters that ask for the client's certificate get it, and refuse any other") {
    tls_site site(true);
    config settings = site.settings();
    site.refuses(settings);
    settings.tls.certificate_file = site.files().other_client_certificate().string();
    settings.tls.private_key_file = site.files().other_client_key().string();
    site.refuses(settings);
    settings.tls.certificate_file = site.files().client_certificate().string();
    settings.tls.private_key_file = site.files().client_key().string();
    site.accepts(settings);
}

TEST_CASE("a file that cannot be used is refused at construction, by its name") {
    asio::io_context io;
    const temp_dir dir;
    const std::string pipe = (dir.path() / "pipe").string(); // without a writer
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const auto refused = [&](const config& settings, const std::string& named) {
        INFO(named);
        try {
            const lock_manager manager(io.get_executor(), settings);
            FAIL_CHECK("accepted");
        } catch (const std::invalid_argument& error) {
            CHECK(contains(error.what(), "'" + named + "'"));
        }
    };
    config settings = config_for({"rediss://localhost:1"});
    for (const std::string& named : {std::string("/nonexistent/file"), std::string("/"), pipe}) {
        settings.password_file = named;
        refused(settings, named);
    }
    settings.password_file.clear();
    settings.tls.ca_file = "/nonexistent/file";
    refused(settings, settings.tls.ca_file);
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
    settings.tls.ca_file = write("ca", read_text(site.files().ca()));
    settings.tls.certificate_file =
        write("certificate", read_text(site.files().client_certificate()));
    settings.tls.private_key_file = write("key", read_text(site.files().client_key()));
    settings.username = "locker";
    settings.password_file = write("password", "first\r\nand not this\n");
    settings.reconnect_delay_max = 200ms;
    settings.max_ttl = 120s;
    client me(site.io, settings, 3);
    lock held = me.take("r", once(120s)); // longer than all that follows

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
    const std::string ca = read_text(next.ca());
    const auto says = [&](const std::string& part) {
        everywhere({"CLIENT", "KILL", "USER", "locker", "SKIPME", "yes"});
        me.until_each([&](const master_health& one) { return contains(one.text, part); });
        CHECK(held.held());
    };
    write("ca", ca.substr(0, ca.size() / 2)); // as a reader may find it
    says("cannot use tls.ca_file '" + settings.tls.ca_file);
    write("ca", ca);
    write("certificate", read_text(next.client_certificate()));
    says("cannot use tls.private_key_file '" + settings.tls.private_key_file);
    std::filesystem::remove(settings.tls.private_key_file);
    says("cannot use tls.private_key_file '" + settings.tls.private_key_file);
    write("key", read_text(next.client_key()));
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
