#include "core/masters/admission.hpp"
#include "support/test.hpp"

#include <limits>
#include <random>

namespace admission_test { namespace {

using namespace redlock::core;
using redlock::time_point;

struct server {
    std::string version = "redis_version:7.0.15\r\n";
    std::string role = "master";
    std::string uptime = "1000000";
    std::string memory = "maxmemory:0\r\nmaxmemory_human:0B\r\nmaxmemory_policy:noeviction\r\n";
    std::string persistence = "loading:0\r\nasync_loading:0\r\naof_enabled:0\r\n";
};

// What INFO says, with the fields around those that matter.
std::string info_of(const server& it) {
    return "# Server\r\n" + it.version
           + "redis_git_sha1:00000000\r\nredis_mode:standalone\r\nos:Linux 6.1.0 x86_64\r\n"
             "process_id:4711\r\nrun_id:0123456789abcdef0123456789abcdef01234567\r\ntcp_port:"
             "6379\r\n"
             "uptime_in_seconds:"
           + it.uptime
           + "\r\nuptime_in_days:11\r\nconfig_file:/etc/redis/"
             "redis.conf\r\nio_threads_active:0\r\n\r\n"
             "# Clients\r\nconnected_clients:1\r\nmaxclients:10000\r\n\r\n# Memory\r\n"
             "used_memory:1000000\r\ntotal_system_memory:8000000000\r\n"
           + it.memory + "mem_allocator:jemalloc-5.2.1\r\n\r\n# Persistence\r\n" + it.persistence
           + "rdb_changes_since_last_save:0\r\naof_rewrite_in_progress:0\r\n\r\n# Stats\r\n"
             "evicted_keys:0\r\n\r\n# Replication\r\nrole:"
           + it.role
           + "\r\nconnected_slaves:0\r\nmaster_failover_state:no-failover\r\n"
             "master_replid:8371b4fb1155b71f4a04d3e1bc3e18c4a990aeeb\r\n\r\n# CPU\r\n"
             "used_cpu_sys:1.5\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n# Keyspace\r\n"
             "db0:keys=1,expires=1,avg_ttl=9000\r\n";
}

settings rules() {
    settings out;
    out.max_ttl = 30s;
    out.drift = {0.01, 2ms};
    return out;
}

const time_point now(50'000s);

eligibility judged(const server& it) {
    return judge(*parse_info(info_of(it)), rules(), now);
}

server aged(std::int64_t seconds) {
    server it;
    it.uptime = std::to_string(seconds);
    return it;
}

TEST_CASE("a server is named by its version, that of Valkey if it has one") {
    struct {
        std::string text;
        std::string version;
    } const servers[] = {
        {"redis_version:6.2.14\r\n", "redis 6.2.14"},
        {"redis_version:8.10.0\r\n", "redis 8.10.0"},
        {"redis_version:\r\n", "redis "},
        {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n", "valkey 8.1.1"},
    };
    for (const auto& one : servers) {
        CAPTURE(one.version);
        const auto info = parse_info(info_of({.version = one.text}));
        REQUIRE(info);
        CHECK(info->version == one.version);
        CHECK(info->commands.evalsha);
        CHECK(info->run_id == "0123456789abcdef0123456789abcdef01234567");
        CHECK(info->role == "master");
        CHECK(info->uptime == 1'000'000s);
        CHECK(judge(*info, rules(), now).fit);
    }
}

TEST_CASE("lines may end in CRLF or LF, the last one in nothing") {
    std::string text = info_of({});
    std::erase(text, '\r');
    const auto info = parse_info(text);
    REQUIRE(info);
    CHECK(info->run_id == "0123456789abcdef0123456789abcdef01234567");
    CHECK(info->role == "master");
    const auto bare = parse_info("role:master\nuptime_in_seconds:7\nrun_id:abc");
    REQUIRE(bare);
    CHECK(bare->run_id == "abc");
    CHECK(bare->uptime == 7s);
}

TEST_CASE("an INFO without run id, role or uptime is refused") {
    CHECK(!parse_info(""));
    CHECK(!parse_info("garbage"));
    CHECK(!parse_info("# Server\r\n\r\n"));
    CHECK(!parse_info("role:master\nuptime_in_seconds:7\n"));
    CHECK(!parse_info("run_id:abc\nuptime_in_seconds:7\n"));
    CHECK(!parse_info("run_id:abc\nrole:master\n"));
    CHECK(!parse_info("run_id:\nrole:master\nuptime_in_seconds:7\n"));
    CHECK(!parse_info("run_id:abc\nrole:\nuptime_in_seconds:7\n"));
    CHECK(parse_info("run_id:abc\nrole:master\nuptime_in_seconds:7\n"));
}

TEST_CASE("a field counts by its whole name") {
    CHECK(!parse_info("xrun_id:abc\nrole:master\nuptime_in_seconds:7\n"));
    CHECK(!parse_info("run_id:abc\nslave_role:master\nuptime_in_seconds:7\n"));
    CHECK(!parse_info("run_id:abc\nrole:master\nuptime_in_seconds_x:7\n"));
}

TEST_CASE("a replica is not fit, and says so") {
    const eligibility it = judged({.role = "slave"});
    CHECK(!it.fit);
    CHECK(it.text.find("replica") != std::string::npos);
    CHECK(it.text.find("slave") != std::string::npos);
    CHECK(!judged({.role = "sentinel"}).fit);
}

TEST_CASE("a server that is loading is not fit, and says so") {
    const eligibility it = judged({.persistence = "loading:1\r\naof_enabled:0\r\n"});
    CHECK(!it.fit);
    CHECK(it.text.find("LOADING") != std::string::npos);
}

TEST_CASE("a record names a promotion and the number of evicted keys, each where there is one") {
    server_info info = *parse_info(info_of({}));
    CHECK(info.losses() == "-");
    info.evicted_keys = 12;
    CHECK(info.losses() == "+12");
    info.promoted_from = "abc";
    CHECK(info.losses() == "abc+12");
    info.evicted_keys = 0;
    CHECK(info.losses() == "abc");
    CHECK(
        parse_info("run_id:1\nrole:master\nuptime_in_seconds:1\nevicted_keys:7\n")->evicted_keys
        == 7);
    CHECK(
        parse_info("run_id:1\nrole:master\nuptime_in_seconds:1\nevicted_keys:-7\n")->evicted_keys
        == 0);
}

TEST_CASE("a server that may evict keys is not fit, and names its policy") {
    for (const std::string policy :
         {"allkeys-lru",
          "volatile-lru",
          "volatile-ttl",
          "allkeys-random",
          "volatile-lfu",
          "allkeys-lfu",
          "volatile-random"}) {
        CAPTURE(policy);
        const eligibility limited =
            judged({.memory = "maxmemory:1000000\r\nmaxmemory_policy:" + policy + "\r\n"});
        CHECK(!limited.fit);
        CHECK(limited.text.find(policy) != std::string::npos);
        // Without a limit nothing is ever evicted.
        CHECK(judged({.memory = "maxmemory:0\r\nmaxmemory_policy:" + policy + "\r\n"}).fit);
    }
    CHECK(judged({.memory = "maxmemory:1000000\r\nmaxmemory_policy:noeviction\r\n"}).fit);
    CHECK(!parse_info(info_of({}))->may_evict());
    // A limit without a policy is not trusted.
    CHECK(!judged({.memory = "maxmemory:1000000\r\n"}).fit);
}

TEST_CASE("the longest ttl within a quarantine is the one that it is for") {
    redlock::core::settings of = rules();
    of.protocol = redlock::protocol::guarded;
    of.clock_offset_bound = 1s;
    for (const std::chrono::milliseconds longest : {10ms, 11ms, 2'000ms, 30'000ms, 86'400'000ms}) {
        const auto quarantine = of.recorded_quarantine(longest);
        CHECK(of.ttl_within(quarantine) == longest);
        CHECK(of.ttl_within(quarantine - 1us) == longest - 1ms);
    }
    CHECK(of.ttl_within(0us) == 0ms);
    CHECK(of.ttl_within(48h) == 24h);
}

TEST_CASE("a server votes once it has been up for longer than any lease, by anybody's clock") {
    // 30 s, twice 1 % for the two clocks, 2 ms: and the server may be a second younger than it
    // says.
    const auto needed = 30s + 600ms + 2ms;
    CHECK(rules().quarantine_time() == needed);
    CHECK(judged(aged(0)).votes_from == now + needed);
    CHECK(judged(aged(1)).votes_from == now + needed);
    CHECK(judged(aged(2)).votes_from == now + needed - 1s);
    CHECK(judged(aged(31)).votes_from == now + needed - 30s);
    CHECK(judged(aged(32)).votes_from == never);
    CHECK(judged(aged(1'000'000)).votes_from == never);
    CHECK(judged(aged(-5)).votes_from == now + needed);
    CHECK(judged(aged(0)).fit); // but not yet
}

TEST_CASE("a server whose uptime says nothing of its data votes a quarantine after it was met") {
    const time_point met = now - 10s;
    const eligibility old = judge(*parse_info(info_of({})), rules(), now, met);
    CHECK(old.votes_from == met + rules().quarantine_time());
    const eligibility young = judge(*parse_info(info_of(aged(3))), rules(), now, met);
    CHECK(young.votes_from == now + rules().quarantine_time() - 2s);
    const time_point long_ago = now - rules().quarantine_time();
    CHECK(judge(*parse_info(info_of({})), rules(), now, long_ago).votes_from == never);
    settings guarded = rules(); // its record says it there
    guarded.protocol = redlock::protocol::guarded;
    CHECK(judge(*parse_info(info_of({})), guarded, now, met).votes_from == never);
}

TEST_CASE("a promoted server names what it was a replica of, and nothing else is taken for that") {
    const auto promoted_from = [](const std::string& id) {
        return parse_info(info_of({}) + "master_replid2:" + id + "\r\n")->promoted_from;
    };
    CHECK(parse_info(info_of({}))->promoted_from.empty());
    CHECK(promoted_from(std::string(40, '0')).empty());
    CHECK(promoted_from("").empty());
    CHECK(
        promoted_from("5a49bb1bd1a3e9033a8af5c5ac17f1b18505144c")
        == "5a49bb1bd1a3e9033a8af5c5ac17f1b18505144c");
    CHECK(promoted_from("two words").empty());
    CHECK(promoted_from("a\x7f").empty());
    CHECK(promoted_from("a\x80").empty());
    CHECK(promoted_from("a~") == "a~");
    CHECK(promoted_from(std::string(65, 'a')).empty());
}

TEST_CASE("numbers of any size make no server fit that isn't") {
    const std::string huge = std::to_string(std::numeric_limits<std::int64_t>::max());
    const eligibility oldest = judged({.uptime = huge});
    CHECK(oldest.fit);
    CHECK(oldest.votes_from == never);
    // What does not fit is not believed.
    CHECK(judged({.uptime = "99999999999999999999999999"}).votes_from > now);
    CHECK(judged({.uptime = "-" + huge}).votes_from > now);
    CHECK(judged({.uptime = "many"}).votes_from > now);
    CHECK(!judged({.memory = "maxmemory:" + huge + "\r\nmaxmemory_policy:allkeys-lru\r\n"}).fit);
}

TEST_CASE("garbage in place of INFO is refused or judged, never fatal") {
    std::mt19937 random(9);
    const std::string text = info_of({});
    for (int turn = 0; turn < 2'000; ++turn) {
        std::string broken = text;
        for (int i = 0; i < 20; ++i) {
            broken[random() % broken.size()] = static_cast<char>(random() % 256);
        }
        broken.resize(random() % broken.size());
        if (const auto info = parse_info(broken)) {
            judge(*info, rules(), now);
        }
    }
    SUCCEED();
}

}} // namespace admission_test
