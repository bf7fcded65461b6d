// Subscribers get from the simulated master what they get from a real redis-server.

#include "memory.hpp"
#include "random.hpp"
#include "real_master.hpp"
#include "support/process.hpp"
#include "support/raw_client.hpp"
#include "support/test.hpp"

#include <deque>

using namespace simulation;

namespace {

using command = std::vector<std::string>;

constexpr std::array channels{"p:{a}:free", "p:{b}:free", "other"};
constexpr const char* publishing = "return redis.call('PUBLISH', KEYS[1], ARGV[1])";

command random_words(generator& random, bool may_end_all) {
    const std::string channel = channels[random.below(channels.size())];
    switch (random.below(8)) {
    case 0:
    case 1:
    case 2:
        return {random.percent(50) ? "SUBSCRIBE" : "subscribe", channel};
    case 3:
        return {"UNSUBSCRIBE", channel};
    case 4:
        // With several channels the order of the confirmations is unspecified.
        return may_end_all ? command{"UNSUBSCRIBE"} : command{"SUBSCRIBE"};
    case 5:
        return {"SUBSCRIBE", channel, channels[0]};
    case 6:
        return {"GET", "k"};
    default:
        return random.percent(50) ? command{"PING"} : command{"PING", "hello"};
    }
}

/// Returns the error to an UNSUBSCRIBE of a client without subscriptions: Valkey 8.0 replies with
/// NOSUB. Empty if the server confirms it, as Redis and later versions of Valkey do.
std::string unsubscribe_refusal(std::uint16_t port) {
    redlock::test::raw_client client(port);
    client.send(redlock::test::request_bytes({"UNSUBSCRIBE", "other"}) + "QUIT\r\n");
    const std::string replies = client.receive_all();
    return replies.starts_with("-NOSUB ") ? replies.substr(0, replies.find('\n') + 1) : "";
}

} // namespace

TEST_CASE("the simulated master publishes to its subscribers as a real one does") {
    const auto master = start_master();
    if (!master) {
        SKIP("no redis-server here");
    }
    lua_machine lua;
    server process(lua);
    audience simulated;
    std::array<std::string, 3> told; // by the simulated one, to each listener
    process.tell = [&](std::string_view channel, std::string_view text) {
        const std::vector<audience::listener> who = simulated.of(channel);
        for (const audience::listener one : who) {
            message(channel, text).encode(told[one]);
        }
        return static_cast<std::int64_t>(who.size());
    };
    std::deque<redlock::test::raw_client> real; // with any number of replies in flight
    for (std::size_t i = 0; i < told.size(); ++i) {
        real.emplace_back(master->port());
    }
    redlock::test::resp_client teller("127.0.0.1", master->port());
    const std::string refusal = unsubscribe_refusal(master->port());
    generator random(1, 1);
    for (int i = 0; i < 3000; ++i) {
        INFO("step " << i);
        if (random.percent(40)) {
            const std::string channel = channels[random.below(channels.size())];
            const std::string text = std::to_string(i);
            const command words = random.percent(50)
                                      ? command{"PUBLISH", channel, text}
                                      : command{"EVAL", publishing, "1", channel, text};
            const std::vector<std::string_view> views(words.begin(), words.end());
            REQUIRE(teller.command(words) == process.execute(views, 0).describe());
            continue;
        }
        const auto who = static_cast<audience::listener>(random.below(told.size()));
        const command words = random_words(random, simulated.channels_of(who) < 2);
        const std::vector<std::string_view> views(words.begin(), words.end());
        const bool refused =
            !refusal.empty() && words[0] == "UNSUBSCRIBE" && simulated.channels_of(who) == 0;
        if (refused) {
            told[who] += refusal;
        } else if (const auto said = simulated.execute(who, views)) {
            for (const answer& each : *said) {
                each.encode(told[who]);
            }
        } else {
            process.execute(views, 0).encode(told[who]);
        }
        real[who].send(redlock::test::request_bytes(words));
        REQUIRE(real[who].receive(told[who].size()) == told[who]);
        told[who].clear();
    }
}
