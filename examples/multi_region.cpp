// How long does an acquire take when the masters are in several regions, and what is left when a
// region is lost? Reckoned by the library itself, with masters in memory and a clock of its own
// (redlock-testing), so that nothing waits and nothing is guessed.
//
//     multi_region home=1x2 near=20x2 far=90x1
//
// says: two masters a round trip of 1 ms away, two 20 ms away, and one 90 ms away.

#include <redlock/redlock.hpp>
#include <redlock/testing.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using std::chrono::milliseconds;
using milliseconds_of = std::chrono::duration<double, std::milli>;

struct region {
    std::string name;
    milliseconds round_trip{0};
    std::size_t masters = 0;
};

region parse(const std::string& text) {
    const std::size_t equals = text.find('=');
    const std::size_t times = text.find('x', equals);
    region out;
    if (equals != std::string::npos && times != std::string::npos) {
        out.name = text.substr(0, equals);
        out.round_trip = milliseconds(std::atoi(text.c_str() + equals + 1));
        out.masters = static_cast<std::size_t>(std::atoi(text.c_str() + times + 1));
    }
    if (out.round_trip < milliseconds(1) || out.masters < 1) {
        throw std::invalid_argument("'" + text + "' is no NAME=MILLISECONDSxMASTERS");
    }
    return out;
}

/// Acquires a free lock in the virtual world, and prints the time and the result.
void acquire_once(redlock::testing::virtual_quorum& quorum, const std::string& resource) {
    redlock::acquire_options options;
    options.wait = redlock::wait_for::none();
    const auto began = quorum.now();
    std::optional<redlock::error_code> outcome;
    redlock::lock held;
    quorum.manager().async_acquire(
        resource, options, [&](redlock::error_code error, redlock::lock got) {
            outcome = error;
            held = std::move(got);
        });
    quorum.advance_until([&] { return outcome.has_value(); });
    const double took = milliseconds_of(quorum.now() - began).count();
    if (*outcome) {
        std::printf("%8.0f ms  %s\n", took, outcome->message().c_str());
    } else {
        const double left = milliseconds_of(held.deadline() - quorum.now()).count();
        std::printf("%8.0f ms  locked, %.0f ms of the lease are left\n", took, left);
    }
    held = {}; // and it is released
    quorum.advance(std::chrono::seconds(1));
}

void show(const std::vector<region>& regions, std::size_t lost) {
    std::size_t masters = 0;
    for (const region& one : regions) {
        masters += one.masters;
    }
    redlock::config settings;
    settings.master_timeout = milliseconds(500);
    redlock::testing::virtual_quorum quorum(masters, settings);
    quorum.manager(); // it is connected, and has seen no failure, when the region is lost
    std::size_t next = 0;
    for (std::size_t i = 0; i < regions.size(); ++i) {
        for (std::size_t j = 0; j < regions[i].masters; ++j, ++next) {
            quorum.answer_after(next, regions[i].round_trip);
            if (i == lost) {
                quorum.master(next).hang(); // cut off: nothing refuses, nothing answers
            }
        }
    }
    const std::string what = lost < regions.size() ? "without " + regions[lost].name : "all up";
    std::printf("%-16s first", what.c_str());
    acquire_once(quorum, "first");
    std::printf("%-16s then ", "");
    acquire_once(quorum, "then");
}

} // namespace

int main(int argc, char** argv) {
    try {
        const std::vector<std::string> words(argv + 1, argv + argc);
        std::vector<region> regions;
        for (const std::string& word : words) {
            regions.push_back(parse(word));
        }
        if (regions.empty()) {
            throw std::invalid_argument("usage: multi_region NAME=MILLISECONDSxMASTERS...");
        }
        for (std::size_t lost = 0; lost <= regions.size(); ++lost) {
            show(regions, (lost + regions.size()) % (regions.size() + 1)); // none of them first
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
