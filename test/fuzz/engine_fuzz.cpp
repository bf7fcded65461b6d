// The whole engine: a script of events, of which the bytes of the masters are a part.
//
// One byte chooses an event, those after it its arguments. `make_corpus` writes such scripts by the
// names of the events: a new one goes to the end.

#include "fuzzed_quorum.hpp"
#include "input.hpp"

#include <array>

namespace {

using std::chrono::milliseconds;
using namespace std::string_view_literals;

// What servers say, and what none should say: the answer to the next command, whatever that is.
constexpr std::array answers{
    "+OK\r\n"sv,
    "$-1\r\n"sv,
    ":1\r\n"sv,
    ":0\r\n"sv,
    ":-1\r\n"sv,
    "*-1\r\n"sv,
    "*0\r\n"sv,
    "*2\r\n:1\r\n:2\r\n"sv,
    "$0\r\n\r\n"sv,
    "+QUEUED\r\n"sv,
    "-NOSCRIPT No matching script. Please use EVAL.\r\n"sv,
    "-LOADING Redis is loading the dataset in memory\r\n"sv,
    "-READONLY You can't write against a read only replica.\r\n"sv,
    "-NOAUTH Authentication required.\r\n"sv,
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"sv,
    "-NOPERM this user has no permissions to run the 'eval' command\r\n"sv,
    "-ERR unknown command 'EVALSHA', with args beginning with: 'p:r0' \r\n"sv,
    "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n"sv,
    ":\r\n"sv,
    "$5\r\nab"sv,
    "nonsense\r\n"sv,
};

constexpr std::array spans{
    milliseconds(1),
    milliseconds(10),
    milliseconds(50),
    milliseconds(100),
    milliseconds(333),
    milliseconds(1'000),
    milliseconds(3'400),
    milliseconds(10'000),
    milliseconds(31'000),
};

constexpr std::array ttls{
    milliseconds(10'000),
    milliseconds(1'000),
    milliseconds(100),
    milliseconds(20),
    milliseconds(30'000),
};

redlock::acquire_options options_from(fuzz::input& in) {
    constexpr std::array waits{
        redlock::wait_for::none(),
        redlock::wait_for(milliseconds(250)),
        redlock::wait_for::forever(),
    };
    redlock::acquire_options out;
    out.ttl = ttls[in.below(ttls.size())];
    out.wait = waits[in.below(waits.size())];
    const std::uint8_t flags = in.byte();
    out.renew = (flags & 1U) != 0 ? redlock::renewal::automatic : redlock::renewal::off;
    out.min_validity = (flags & 2U) != 0 ? out.ttl / 4 : milliseconds(0);
    out.stop_margin = (flags & 4U) != 0 ? out.ttl / 4 : milliseconds(0);
    out.max_hold = (flags & 8U) != 0 ? 2 * out.ttl : milliseconds(0);
    return out;
}

std::size_t master_from(fuzz::input& in) {
    return in.below(fuzz::fuzzed_quorum::masters);
}

constexpr std::size_t resources = 2;

using happening = void (*)(fuzz::fuzzed_quorum&, fuzz::input&);
// In the order of `EVENTS` in make_corpus.
constexpr happening events[] = {
    [](auto& quorum, auto&) { quorum.settle(); },
    [](auto& quorum, auto& in) { quorum.connect(master_from(in)); },
    [](auto& quorum, auto& in) { quorum.refuse(master_from(in)); },
    [](auto& quorum, auto& in) { quorum.disconnect(master_from(in)); },
    [](auto& quorum, auto& in) { quorum.take_output(master_from(in)); },
    [](auto& quorum, auto& in) { quorum.complete_write(master_from(in)); },
    [](auto& quorum, auto& in) { quorum.answer(master_from(in)); },
    [](auto& quorum, auto& in) {
        const std::size_t which = master_from(in);
        quorum.answer_with(which, answers[in.below(answers.size())]);
    },
    [](auto& quorum, auto& in) {
        const std::size_t which = master_from(in);
        quorum.say(which, in.text(in.byte()));
    },
    [](auto& quorum, auto& in) {
        const std::size_t which = master_from(in);
        const std::size_t size = in.byte();
        quorum.deliver(which, size == 0 ? std::string_view::npos : size);
    },
    [](auto& quorum, auto& in) {
        const std::size_t which = master_from(in);
        quorum.change(which, in.byte());
    },
    [](auto& quorum, auto& in) { quorum.restart(master_from(in)); },
    [](auto& quorum, auto& in) { quorum.pass(spans[in.below(spans.size())]); },
    [](auto& quorum, auto& in) { quorum.stall(spans[in.below(spans.size())]); },
    [](auto& quorum, auto&) { quorum.wake(); },
    [](auto& quorum, auto& in) {
        const std::size_t resource = in.below(resources);
        quorum.acquire(resource, options_from(in));
    },
    [](auto& quorum, auto& in) { quorum.cancel(in.byte()); },
    [](auto& quorum, auto& in) {
        const std::size_t which = in.byte();
        quorum.extend(which, ttls[in.below(ttls.size())]);
    },
    [](auto& quorum, auto& in) { quorum.release(in.byte()); },
    [](auto& quorum, auto& in) { quorum.abandon(in.byte()); },
    [](auto& quorum, auto& in) { quorum.ask(in.below(resources)); },
    [](auto& quorum, auto&) { quorum.look(); },
    [](auto& quorum, auto&) { quorum.close(); },
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr int events_max = 300; // a longer script finds nothing that two short ones do not
    fuzz::input in(data, size);
    const std::uint8_t flags = in.byte();
    fuzz::fuzzed_quorum quorum(
        {.quarantine = (flags & 1U) != 0,
         .password = (flags & 2U) != 0,
         .young = (flags & 4U) != 0});
    if ((flags & 8U) == 0) {
        quorum.start();
    }
    for (int i = 0; i < events_max && !in.empty(); ++i) {
        events[in.below(std::size(events))](quorum, in);
    }
    quorum.finish();
    return 0;
}
