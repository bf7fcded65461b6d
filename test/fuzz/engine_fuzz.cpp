// The whole engine: a script of events, of which the bytes of the masters are a part.
//
// One byte chooses an event, those after it its arguments. `make_corpus` writes such scripts by the
// names below: a new event goes to the end.

#include "fuzzed_quorum.hpp"
#include "input.hpp"

#include <array>

namespace {

using std::chrono::milliseconds;
using namespace std::string_view_literals;

enum class event : std::uint8_t {
    settle,
    connect,
    refuse,
    disconnect,
    take_output,
    complete_write,
    answer,
    answer_with,
    say,
    deliver,
    change,
    restart,
    pass,
    stall,
    wake,
    acquire,
    cancel,
    extend,
    release,
    abandon,
    ask,
    look,
    close,
    count, // of the others
};

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

void happen(fuzz::fuzzed_quorum& quorum, event what, fuzz::input& in) {
    const auto master = [&] { return in.below(fuzz::fuzzed_quorum::masters); };
    switch (what) {
    case event::settle:
        return quorum.settle();
    case event::connect:
        return quorum.connect(master());
    case event::refuse:
        return quorum.refuse(master());
    case event::disconnect:
        return quorum.disconnect(master());
    case event::take_output:
        return quorum.take_output(master());
    case event::complete_write:
        return quorum.complete_write(master());
    case event::answer:
        return quorum.answer(master());
    case event::answer_with: {
        const std::size_t which = master();
        return quorum.answer_with(which, answers[in.below(answers.size())]);
    }
    case event::say: {
        const std::size_t which = master();
        return quorum.say(which, in.text(in.byte()));
    }
    case event::deliver: {
        const std::size_t which = master();
        const std::size_t size = in.byte();
        return quorum.deliver(which, size == 0 ? std::string_view::npos : size);
    }
    case event::change: {
        const std::size_t which = master();
        return quorum.change(which, in.byte());
    }
    case event::restart:
        return quorum.restart(master());
    case event::pass:
        return quorum.pass(spans[in.below(spans.size())]);
    case event::stall:
        return quorum.stall(spans[in.below(spans.size())]);
    case event::wake:
        return quorum.wake();
    case event::acquire: {
        const std::size_t resource = in.below(2);
        return quorum.acquire(resource, options_from(in));
    }
    case event::cancel:
        return quorum.cancel(in.byte());
    case event::extend: {
        const std::size_t which = in.byte();
        return quorum.extend(which, ttls[in.below(ttls.size())]);
    }
    case event::release:
        return quorum.release(in.byte());
    case event::abandon:
        return quorum.abandon(in.byte());
    case event::ask:
        return quorum.ask(in.below(2));
    case event::look:
        return quorum.look();
    case event::close:
        return quorum.close();
    case event::count:
        break;
    }
}

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
        happen(quorum, static_cast<event>(in.below(static_cast<std::size_t>(event::count))), in);
    }
    quorum.finish();
    return 0;
}
