// The text that a Prometheus server reads, by a reader of its own that takes nothing else.
#include "core/base/histogram_access.hpp"
#include "primitives/prometheus.hpp"
#include "support/test.hpp"

#include <redlock/testing.hpp>

#include <boost/regex.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstdlib>
#include <sstream>

namespace prometheus_test { namespace {

using namespace redlock;
using Catch::Matchers::ContainsSubstring;

/// One page: its samples by name and labels, in the order in which they came.
struct page {
    std::vector<std::string> series;
    std::map<std::string, double> values;
    std::map<std::string, std::string> types;

    double value(const std::string& name) const {
        INFO(name);
        REQUIRE(values.contains(name));
        return values.at(name);
    }
};

// The family of a sample: of a histogram's, the name without what is appended.
std::string family_of(const page& so_far, const std::string& name) {
    for (const std::string suffix : {"_bucket", "_sum", "_count"}) {
        if (name.ends_with(suffix)) {
            const std::string base = name.substr(0, name.size() - suffix.size());
            if (so_far.types.contains(base) && so_far.types.at(base) == "histogram") {
                return base;
            }
        }
    }
    return name;
}

page parse(const std::string& text) {
    static const boost::regex help(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) [^\\]+)");
    static const boost::regex type(
        R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram))");
    static const boost::regex sample(
        R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_]\w*="([^"\\]|\\[\\"n])*")re"
        R"re((,[a-zA-Z_]\w*="([^"\\]|\\[\\"n])*")*\}) (\d+(\.\d+)?(e[-+]\d+)?))re");
    REQUIRE(text.ends_with('\n'));
    page out;
    std::string current;
    std::set<std::string> helped;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        INFO(line);
        boost::smatch match;
        if (boost::regex_match(line, match, help)) {
            CHECK(helped.insert(match[1]).second);
            current = match[1];
        } else if (boost::regex_match(line, match, type)) {
            CHECK(match[1] == current); // directly after its help
            CHECK(out.types.emplace(match[1], match[2]).second);
            CHECK((match[2] == "counter") == match[1].str().ends_with("_total"));
        } else {
            REQUIRE(boost::regex_match(line, match, sample));
            CHECK(family_of(out, match[1]) == current); // a family is in one piece
            const std::string series = match[1].str() + match[2].str();
            out.series.push_back(series);
            CHECK(out.values.emplace(series, std::atof(match[6].str().c_str())).second);
        }
    }
    CHECK(helped.size() == out.types.size());
    return out;
}

metrics some_metrics() {
    metrics out;
    out.acquired = 7;
    out.failed[errc::contended] = 3;
    out.lost[loss_reason::owned_by_other] = 2;
    out.waiting = 4;
    detail::histogram_access::add(out.hold, 30us);
    detail::histogram_access::add(out.hold, 3ms);
    detail::histogram_access::add(out.hold, 1h);
    out.masters.resize(2);
    out.masters[0].endpoint = "10.0.0.1:6379";
    out.masters[1].endpoint = "10.0.0.2:6379";
    out.masters[0].commands = 12;
    out.masters[0].acquire_votes[vote::granted] = 5;
    out.masters[1].extend_votes[vote::timed_out] = 6;
    detail::histogram_access::add(out.masters[1].latency, 700us);
    return out;
}

health some_health() {
    health out;
    out.ready = true;
    out.admitted = 1;
    out.quorum = 2;
    out.members.resize(5);
    out.generation = 3;
    out.max_ttl = 30s;
    out.quarantine_time = 32'602ms;
    out.masters.resize(2);
    out.masters[0].endpoint = "10.0.0.1:6379";
    out.masters[0].state = master_state::admitted;
    out.masters[0].version = "redis 7.0.15";
    out.masters[0].run_id = "abc";
    out.masters[0].compare_and_delete = "EVALSHA";
    out.masters[1].endpoint = "10.0.0.2:6379";
    out.masters[1].state = master_state::quarantined;
    out.masters[1].quarantine_left = 1500ms;
    return out;
}

const config some_settings;

std::string some_page(const health& now, const std::string& quorum) {
    return detail::page_of(
        std::vector<detail::exported>{{quorum, some_metrics(), now, some_settings}});
}

TEST_CASE("one manager's figures are a page of samples with types") {
    const page got = parse(some_page(some_health(), "default"));
    const std::string q = R"(quorum="default")";
    CHECK(got.value("redlock_acquires_total{" + q + R"(,outcome="acquired"})") == 7);
    CHECK(got.value("redlock_acquires_total{" + q + R"(,outcome="contended"})") == 3);
    CHECK(got.value("redlock_losses_total{" + q + R"(,reason="owned_by_other"})") == 2);
    CHECK(got.value("redlock_losses_total{" + q + R"(,reason="closed"})") == 0);
    CHECK(got.value("redlock_acquires_waiting{" + q + "}") == 4);
    CHECK(got.value("redlock_members{" + q + "}") == 5);
    CHECK(got.value("redlock_members_generation{" + q + "}") == 3);
    CHECK(got.value("redlock_ready{" + q + "}") == 1);
    CHECK(got.value("redlock_votes_needed{" + q + "}") == 2);
    CHECK(got.value("redlock_max_ttl_seconds{" + q + "}") == 30);
    CHECK(got.value("redlock_quarantine_seconds{" + q + "}") == 32.602);
    CHECK(got.value("redlock_master_timeout_seconds{" + q + "}") == 0.1);
    const std::string agreed = R"(,key_prefix="redlock:",protocol="guarded"})";
    CHECK(got.value("redlock_config_info{" + q + agreed) == 1);

    const std::string first = q + R"(,master="10.0.0.1:6379")";
    const std::string second = q + R"(,master="10.0.0.2:6379")";
    CHECK(got.value("redlock_master_commands_total{" + first + "}") == 12);
    const std::string votes = "redlock_master_votes_total{";
    CHECK(got.value(votes + first + R"(,operation="acquire",vote="granted"})") == 5);
    CHECK(got.value(votes + second + R"(,operation="extend",vote="timed_out"})") == 6);
    CHECK(got.value("redlock_master_state{" + second + R"(,state="quarantined"})") == 1);
    CHECK(got.value("redlock_master_state{" + second + R"(,state="admitted"})") == 0);
    CHECK(got.value("redlock_master_quarantine_left_seconds{" + second + "}") == 1.5);
    CHECK(
        got.value(
            "redlock_master_info{" + first
            + R"(,version="redis 7.0.15",run_id="abc",compare_and_delete="EVALSHA"})")
        == 1);
}

TEST_CASE("the buckets of a histogram are cumulative, end with +Inf, and are in seconds") {
    const page got = parse(some_page(some_health(), "a"));
    const std::string bucket = R"(redlock_hold_seconds_bucket{quorum="a",le=")";
    CHECK(got.value(bucket + "5e-05\"}") == 1);
    CHECK(got.value(bucket + "0.002\"}") == 1);
    CHECK(got.value(bucket + "0.005\"}") == 2);
    CHECK(got.value(bucket + "300\"}") == 2);
    CHECK(got.value(bucket + "+Inf\"}") == 3);
    CHECK(got.value(R"(redlock_hold_seconds_count{quorum="a"})") == 3);
    CHECK(got.value(R"(redlock_hold_seconds_sum{quorum="a"})") == 3600.00303);
    double last = 0;
    std::size_t buckets = 0;
    for (const std::string& series : got.series) {
        if (series.starts_with(bucket)) {
            CHECK(got.value(series) >= last);
            last = got.value(series);
            ++buckets;
        }
    }
    CHECK(buckets == histogram::bounds.size() + 1);
}

TEST_CASE("several managers share a page: each family once, told apart by the quorum") {
    std::vector<detail::exported> managers{
        {"jobs", some_metrics(), some_health(), some_settings},
        {"users", some_metrics(), some_health(), some_settings}};
    managers[1].counted.acquired = 70;
    const page got = parse(detail::page_of(managers));
    CHECK(got.value(R"(redlock_acquires_total{quorum="jobs",outcome="acquired"})") == 7);
    CHECK(got.value(R"(redlock_acquires_total{quorum="users",outcome="acquired"})") == 70);
    const page one = parse(some_page(some_health(), "default"));
    CHECK(got.types == one.types);
    CHECK(got.series.size() == 2 * one.series.size());
}

TEST_CASE("a page has what managers have counted, and their settings") {
    config settings;
    settings.key_prefix = "jobs:";
    settings.quarantine = false;
    testing::virtual_quorum quorum(3, settings);
    const std::vector<prometheus_source> both{
        {"a", &quorum.manager()}, {"b", &quorum.add_manager()}};
    const page got = parse(to_prometheus(both));
    CHECK(got.value(R"(redlock_masters_admitted{quorum="a"})") == 3);
    CHECK(got.value(R"(redlock_quarantine_off{quorum="b"})") == 1);
    CHECK(
        got.value(R"(redlock_config_info{quorum="b",key_prefix="jobs:",protocol="guarded"})") == 1);
    CHECK(parse(to_prometheus(quorum.manager())).value(R"(redlock_ready{quorum="default"})") == 1);
}

TEST_CASE("what comes from the network or from the user cannot break the page") {
    health hostile = some_health();
    hostile.masters[0].version = "7\"} 1\nevil 2 \\ \xff\xfe\t";
    const std::string text = some_page(hostile, "caf\xc3\xa9 \"x\"");
    const page got = parse(text);
    CHECK_THAT(text, ContainsSubstring(R"(version="7\"} 1\nevil 2 \\ \\xff\\xfe\\x09")"));
    CHECK(got.value(R"(redlock_ready{quorum="caf\\xc3\\xa9 \"x\""})") == 1);
}

}} // namespace prometheus_test
