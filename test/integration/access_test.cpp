// Passwords, database numbers, and what the servers see of a client.
#include "quorum_fixture.hpp"

namespace redlock::test { namespace {

const std::string password = "s3cr:et/p@ss word%";
const std::string password_in_url = "s3cr%3Aet%2Fp%40ss%20word%25";

master_options guarded_server() {
    master_options options;
    options.requirepass = password;
    return options;
}

// "redis://127.0.0.1:1" with something before the host.
std::string with_user(const std::string& url, const std::string& user) {
    const std::size_t at = url.find("://") + 3;
    return url.substr(0, at) + user + "@" + url.substr(at);
}

// Everything that the library says about itself.
struct everything_said {
    void listen(config& c) {
        c.log.level = log_level::debug;
        c.log.write = [this](log_level, std::string_view line) { all.append(line).append("\n"); };
    }
    void add(const client& me) { all += to_string(me.health()) + "\n"; }
    void add(const acquisition& got) {
        all += to_string(got.why) + "\n" + got.error.message() + "\n";
    }
    bool contains(const std::string& text) const { return all.find(text) != std::string::npos; }

    std::string all;
};

TEST_CASE("a password is given in the URL, or once for all masters, and never printed") {
    quorum_of_masters masters(3, guarded_server());
    asio::io_context io;
    everything_said said;
    SECTION("in the URL") {
        std::vector<std::string> urls;
        for (const std::string& url : masters.urls()) {
            urls.push_back(with_user(url, ":" + password_in_url));
        }
        config settings = config_for(urls);
        said.listen(settings);
        client me(io, settings, 3);
        const acquisition_ptr got = me.acquire("r");
        REQUIRE(!got->error);
        said.add(me);
        said.add(*got);
        CHECK_FALSE(said.contains(std::string(got->lock.secret())));
        CHECK(me.release(got->lock) == release_result::released);
    }
    SECTION("in the configuration") {
        config settings = config_for(masters.urls());
        settings.password = password;
        said.listen(settings);
        client me(io, settings, 3);
        const acquisition_ptr got = me.acquire("r");
        REQUIRE(!got->error);
        said.add(me);
        said.add(*got);
    }
    SECTION("with the name of the default user") {
        config settings = config_for(masters.urls());
        settings.username = "default";
        settings.password = password;
        client me(io, settings, 3);
        CHECK(!me.acquire("r")->error);
    }
    CHECK_FALSE(said.contains(password));
    CHECK_FALSE(said.contains(password_in_url));
}

TEST_CASE("a wrong password is a vote with the server's error, and is never printed") {
    quorum_of_masters masters(3, guarded_server());
    asio::io_context io;
    everything_said said;
    const std::string wrong = "not-the-p4ssword";
    config settings = config_for({masters[0].url(), with_user(masters[1].url(), ":" + wrong)});
    settings.masters.emplace_back(with_user(masters[2].url(), "nobody:" + wrong));
    said.listen(settings);
    client me(io, settings);
    me.until_each(is_down);
    const acquisition_ptr got = me.acquire("r");
    CHECK(*got == errc::no_quorum);
    for (const master_vote& one : got->why.votes) {
        CHECK(one.vote == vote::error);
    }
    CHECK(got->why.votes[0].text.find("NOAUTH") == 0);
    CHECK(got->why.votes[1].text.find("WRONGPASS") == 0);
    CHECK(got->why.votes[2].text.find("WRONGPASS") == 0);
    said.add(me);
    said.add(*got);
    CHECK_FALSE(said.contains(wrong));
    CHECK(said.contains("WRONGPASS"));
}

TEST_CASE("locks live in the database that the URL names") {
    quorum_of_masters masters(3);
    asio::io_context io;
    std::vector<std::string> urls;
    for (const std::string& url : masters.urls()) {
        urls.push_back(url + "/3");
    }
    client me(io, config_for(urls), 3);
    lock mine = me.take("r");
    run_until(io, [&] {
        return std::all_of(masters.begin(), masters.end(), [](const master_process& one) {
            resp_client at("127.0.0.1", one.port());
            return at.command({"SELECT", "3"}) == "OK" && at.command({"DBSIZE"}) == "1";
        });
    });
    CHECK(masters.total_keys() == 0); // in database 0
    CHECK(me.health().masters[0].endpoint.ends_with("/3"));
    client elsewhere(io, config_for(masters.urls()), 3);
    CHECK(!elsewhere.acquire("r")->error);
    CHECK(me.release(mine) == release_result::released);
}

TEST_CASE("a database that the server does not have is a vote with its error") {
    quorum_of_masters masters(1);
    asio::io_context io;
    client me(io, config_for({masters[0].url() + "/99"}));
    me.until_each(is_down);
    const acquisition_ptr got = me.acquire("r");
    CHECK(*got == errc::no_quorum);
    CHECK(contains(got->why.votes[0].text, "DB index"));
}

TEST_CASE("CLIENT LIST shows the client's name, if it has one") {
    quorum_fixture site(1, [](config& c) { c.client_name = "billing-7"; });
    CHECK(contains(site.masters[0].command({"CLIENT", "LIST"}), "name=billing-7 "));
    config settings = config_for(site.masters.urls());
    settings.client_name.clear();
    client nameless(site.io, settings, 1);
    CHECK(!nameless.acquire("r")->error);
}

TEST_CASE("all keys begin with the prefix that was configured") {
    quorum_fixture site(3, [](config& c) { c.key_prefix = "{team}:locks:"; });
    lock mine = site.me.take("r");
    CHECK(site.me.extend(mine, 5s) == error_code());
    for (const master_process& master : site.masters) {
        CHECK(site.eventually(
            [&] { return master.keys() == std::vector<std::string>{"{team}:locks:{r}"}; }));
    }
}

}} // namespace redlock::test
