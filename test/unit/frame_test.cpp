// Which commands share a call, in which order the calls leave, and what they say.

#include "core/bytes/guarded_scripts.hpp"
#include "core/locks/frame.hpp"
#include "support/test.hpp"
#include "virtual_master.hpp"

namespace frame_test { namespace {

using namespace redlock::core;
using redlock::time_point;
using std::chrono::nanoseconds;
using unit::arguments;

constexpr master_set three_masters = 0b111;
constexpr command_kind acquires = command_kind::acquire;
constexpr command_kind removes = command_kind::remove;
constexpr command_kind extends = command_kind::extend;

constexpr time_point at(nanoseconds since_start) {
    return time_point(1'000s) + since_start;
}

// What a test says of one command; the number of its lock identifies it.
struct wanted {
    command_kind kind = acquires;
    std::uint32_t number = 1;
    master_set to = three_masters;
    std::chrono::milliseconds ttl = 10s;
    std::uint64_t token = 0;
    std::chrono::milliseconds fence_ttl = 0s;
    time_point by = forever;
    bool publishes = false;
    bool alone = false;
    bool native = false;
    time_point now = at(0s);
};

struct frames_site {
    void add(const wanted& one) {
        const std::string number = std::to_string(one.number);
        const std::string lock = "lock" + number;
        const std::string fence = "fence" + number;
        const std::string token = "token" + number;
        box.add(
            {.kind = one.kind,
             .names = {.lock = lock, .fence = fence, .record = "other", .token = token},
             .ttl = one.ttl,
             .fencing = {one.token, one.fence_ttl},
             .by = one.by,
             .native = one.native,
             .item = {.claim = {one.number, 1}, .epoch = 7, .publishes = one.publishes ? 2U : 0U},
             .to = one.to},
            one.alone,
            one.now);
    }
    void add_all(const std::vector<wanted>& all) {
        for (const wanted& one : all) {
            add(one);
        }
    }

    // The frames of this turn, as copies.
    std::vector<frame> flush() {
        std::vector<frame> sent;
        box.flush([&](const frame& one) { sent.push_back(one); });
        return sent;
    }
    std::vector<frame> flush(std::size_t expected) {
        std::vector<frame> sent = flush();
        REQUIRE(sent.size() == expected);
        return sent;
    }
    // Which locks are in one call with which.
    std::vector<std::vector<std::uint32_t>> calls() {
        std::vector<std::vector<std::uint32_t>> all;
        for (const frame& one : flush()) {
            all.push_back(locks_of(one));
        }
        return all;
    }
    static std::vector<std::uint32_t> locks_of(const frame& one) {
        std::vector<std::uint32_t> numbers;
        for (const frame::item& each : one.items) {
            numbers.push_back(each.claim.index);
        }
        return numbers;
    }

    frames box;
};

using calls = std::vector<std::vector<std::uint32_t>>;

// The words of a call, with those that are checked of a master in place of the real ones.
arguments
words_of(const frames& box, const frame& one, command_variant how, std::size_t master = 1) {
    std::string bytes;
    box.write(bytes, one, how, "the:epoch", {17'000, 16'000});
    if (one.kind != removes) {
        for (const char* const word : {"run", "30000000", "limit"}) {
            append_argument(bytes, word);
        }
    } else {
        frames::write_publishes(bytes, one, master);
    }
    const auto words = unit::virtual_master::take_command(bytes);
    REQUIRE(words);
    CHECK(bytes.empty());
    return *words;
}

// Those of the one call with these locks, separated by blanks.
std::string line_of(const std::vector<wanted>& all, command_variant how) {
    frames_site it;
    it.add_all(all);
    const std::vector<frame> sent = it.flush(1);
    std::string line;
    for (const std::string& word : words_of(it.box, sent[0], how)) {
        line.append(line.empty() ? "" : " ").append(word);
    }
    return line;
}

TEST_CASE("commands of the same kind, masters and ttl share a call") {
    for (const command_kind kind : {acquires, removes, extends}) {
        frames_site it;
        CHECK(it.box.empty());
        it.add_all({{.kind = kind, .number = 3}, {.kind = kind, .number = 1}, {.kind = kind}});
        CHECK(!it.box.empty());
        const std::vector<frame> sent = it.flush(1);
        CHECK(frames_site::locks_of(sent[0]) == std::vector<std::uint32_t>{3, 1, 1});
        CHECK(sent[0].kind == kind);
        CHECK(sent[0].to == three_masters);
        CHECK(sent[0].ttl == 10s);
        CHECK(sent[0].awaited == 3);
        CHECK(sent[0].items[0].epoch == 7);
        CHECK(!sent[0].has_counters());
    }
}

TEST_CASE("commands that differ have calls of their own") {
    const wanted first{.kind = extends, .token = 5, .fence_ttl = 90s};
    const auto with = [&](auto change) {
        wanted other = first;
        other.number = 2;
        change(other);
        frames_site it;
        it.add_all({first, other});
        return it.calls();
    };
    CHECK(with([](wanted&) {}) == calls{{1, 2}});
    CHECK(with([](wanted& other) { other.token = 6; }) == calls{{1, 2}});
    CHECK(with([](wanted& other) { other.publishes = true; }) == calls{{1, 2}});
    CHECK(with([](wanted& other) { other.kind = removes; }) == calls{{2}, {1}});
    CHECK(with([](wanted& other) { other.to = 0b011; }) == calls{{1}, {2}});
    CHECK(with([](wanted& other) { other.to = 0b1111; }) == calls{{1}, {2}});
    CHECK(with([](wanted& other) { other.ttl = 9'999ms; }) == calls{{1}, {2}});
    CHECK(with([](wanted& other) { other.fence_ttl = 0s; }) == calls{{1}, {2}});
    CHECK(with([](wanted& other) { other.fence_ttl = 91s; }) == calls{{1}, {2}});
}

TEST_CASE("a command joins the call that it fits, not only the latest") {
    frames_site it;
    it.add_all({
        {.number = 1},
        {.number = 2, .ttl = 20s},
        {.kind = extends, .number = 3},
        {.number = 4},
        {.number = 5, .ttl = 20s},
        {.kind = extends, .number = 6},
    });
    CHECK(it.calls() == calls{{1, 4}, {2, 5}, {3, 6}});
}

TEST_CASE("the sixty-fifth lock opens another call") {
    frames_site it;
    for (std::uint32_t i = 1; i <= 130; ++i) {
        it.add({.number = i});
    }
    const calls sent = it.calls();
    REQUIRE(sent.size() == 3);
    CHECK(sent[0].size() == frame::locks_max);
    CHECK(sent[0].front() == 1);
    CHECK(sent[1].size() == frame::locks_max);
    CHECK(sent[1].front() == 65);
    CHECK(sent[2] == std::vector<std::uint32_t>{129, 130});
    CHECK(frame::locks_max == 64);
}

TEST_CASE("frames are full when one of them is, until their turn ends") {
    frames_site it;
    for (std::uint32_t i = 1; i < frame::locks_max; ++i) {
        it.add({.number = i});
        it.add({.kind = removes, .number = i, .alone = true});
    }
    CHECK(!it.box.full());
    it.add({.number = 64});
    CHECK(it.box.full());
    it.add({.kind = extends, .number = 65});
    CHECK(it.box.full());
    it.flush();
    CHECK(!it.box.full());
    it.add({.number = 66});
    CHECK(!it.box.full());
}

TEST_CASE("a command that is to be alone joins none, and none joins it") {
    frames_site it;
    it.add_all({
        {.number = 1},
        {.number = 2, .alone = true},
        {.number = 3},
        {.number = 4, .alone = true},
    });
    CHECK(it.calls() == calls{{1, 3}, {2}, {4}});
}

TEST_CASE("removals leave before acquires, and acquires before extensions") {
    frames_site it;
    it.add_all({
        {.kind = extends, .number = 1},
        {.kind = acquires, .number = 2},
        {.kind = removes, .number = 3},
        {.kind = extends, .number = 4, .alone = true},
        {.kind = removes, .number = 5, .alone = true},
        {.kind = acquires, .number = 6},
    });
    CHECK(it.calls() == calls{{3}, {5}, {2, 6}, {1}, {4}});
}

TEST_CASE("locks are refused together only if they would be at nearly the same time") {
    const auto joined = [](const std::vector<nanoseconds>& limits, nanoseconds now = 0s) {
        frames_site it;
        std::uint32_t number = 0;
        for (const nanoseconds limit : limits) {
            it.add({.number = ++number, .by = at(limit), .now = at(now)});
        }
        return it.calls();
    };
    // An eighth of what is left is lost at most.
    CHECK(joined({800ms, 900ms}) == calls{{1, 2}});
    CHECK(joined({800ms, 900ms + 1ns}) == calls{{1}, {2}});
    CHECK(joined({900ms, 800ms}) == calls{{1, 2}});
    CHECK(joined({900ms + 1ns, 800ms}) == calls{{1}, {2}});
    CHECK(joined({850ms, 900ms, 800ms}) == calls{{1, 2, 3}});
    CHECK(joined({850ms, 900ms, 799ms}) == calls{{1, 2}, {3}}); // from first to last
    CHECK(joined({800ms, 850ms, 901ms}) == calls{{1, 2}, {3}});
    CHECK(joined({800ms, 901ms, 850ms}) == calls{{1}, {2, 3}}); // the latest that it fits
    CHECK(joined({800ms, 900ms}, 400ms) == calls{{1}, {2}});
    CHECK(joined({800ms, 850ms}, 400ms) == calls{{1, 2}});
    // What is late already.
    CHECK(joined({800ms, 800ms}, 900ms) == calls{{1, 2}});
    CHECK(joined({800ms, 801ms}, 900ms) == calls{{1}, {2}});

    frames_site it;
    it.add_all({
        {.number = 1, .by = at(800ms)},
        {.number = 2, .by = forever},
        {.number = 3, .by = at(900ms)},
        {.number = 4, .by = forever},
    });
    const std::vector<frame> sent = it.flush(2);
    CHECK(frames_site::locks_of(sent[0]) == std::vector<std::uint32_t>{1, 3});
    CHECK(sent[0].by_first == at(800ms));
    CHECK(sent[0].by_last == at(900ms));
    CHECK(frames_site::locks_of(sent[1]) == std::vector<std::uint32_t>{2, 4});
    CHECK(sent[1].by_first == forever);
}

TEST_CASE("a turn ends when its commands leave") {
    frames_site it;
    const std::uint32_t turn = it.box.turn();
    CHECK(turn != 0);
    CHECK(it.flush().empty());
    CHECK(it.box.turn() == turn); // nothing left
    it.add({.number = 1, .now = at(1s)});
    it.add({.number = 2, .now = at(2s)});
    CHECK(it.box.turn() == turn);
    CHECK(it.box.added_at() == at(2s));
    CHECK(it.calls() == calls{{1, 2}});
    CHECK(it.box.turn() != turn);
    CHECK(it.box.empty());
    CHECK(it.flush().empty());
    it.add({.number = 3});
    CHECK(it.calls() == calls{{3}}); // joins none that has left
    CHECK(it.box.empty());
    it.add({.number = 4});
    CHECK(it.calls() == calls{{4}});
}

TEST_CASE("what is added while a turn is sent belongs to the next one") {
    frames_site it;
    it.add_all({{.kind = removes, .number = 1}, {.number = 2}});
    calls sent;
    it.box.flush([&](const frame& one) {
        sent.push_back(frames_site::locks_of(one));
        it.add({.number = 10 + one.items[0].claim.index});
    });
    CHECK(sent == calls{{1}, {2}});
    CHECK(!it.box.empty());
    CHECK(it.calls() == calls{{11, 12}});
}

TEST_CASE("a call is kept until each of its masters has replied") {
    frames_site it;
    it.add_all({{.number = 1, .to = 0b101}, {.number = 2, .to = 0b010}});
    const std::vector<frame> sent = it.flush(2);
    frame* const first = it.box.find(sent[0].self);
    REQUIRE(first != nullptr);
    CHECK(frames_site::locks_of(*first) == std::vector<std::uint32_t>{1});
    it.box.done(*first);
    CHECK(it.box.find(sent[0].self) == first);
    it.box.done(*first);
    CHECK(it.box.find(sent[0].self) == nullptr);
    frame* const second = it.box.find(sent[1].self);
    REQUIRE(second != nullptr);
    it.box.done(*second);
    CHECK(it.box.find(sent[1].self) == nullptr);
    // Its place is used again, and nothing of it is left.
    it.add_all({{.number = 3, .ttl = 20s, .by = at(5s)}, {.number = 4, .ttl = 20s, .by = at(5s)}});
    const std::vector<frame> next = it.flush(1);
    CHECK(frames_site::locks_of(next[0]) == std::vector<std::uint32_t>{3, 4});
    CHECK(next[0].by_first == at(5s));
    CHECK(next[0].by_last == at(5s));
    CHECK(next[0].to == three_masters);
    CHECK(next[0].awaited == 3);
    CHECK(words_of(it.box, next[0], command_variant::evalsha)[4] == "lock3");
    CHECK(it.box.find(sent[1].self) == nullptr); // it goes by its old name no more
}

TEST_CASE("a master that is gone is sent nothing, and the others get theirs") {
    frames_site it;
    it.add_all({
        {.kind = acquires, .number = 1},
        {.kind = removes, .number = 2, .publishes = true},
        {.kind = extends, .number = 3, .to = 0b010},
        {.kind = acquires, .number = 4, .to = 0b101},
        {.kind = acquires, .number = 5},
    });
    const std::vector<frames::unsent> lost = it.box.drop(1, false);
    REQUIRE(lost.size() == 4);
    std::vector<std::uint32_t> numbers;
    for (const frames::unsent& one : lost) {
        numbers.push_back(one.item.claim.index);
        CHECK(
            one.kind
            == (one.item.claim.index == 2   ? removes
                : one.item.claim.index == 3 ? extends
                                            : acquires));
        CHECK(one.item.epoch == 7);
        CHECK(one.item.publishes == (one.item.claim.index == 2 ? 2U : 0U));
    }
    CHECK(numbers == std::vector<std::uint32_t>{1, 5, 2, 3});
    CHECK(it.box.drop(1, false).empty());
    CHECK(it.box.drop(3, false).empty());
    CHECK(it.box.drop(2, false).size() == 4); // 1, 5, 2 and 4

    const std::vector<frame> sent = it.flush(3);
    CHECK(frames_site::locks_of(sent[0]) == std::vector<std::uint32_t>{2});
    CHECK(frames_site::locks_of(sent[1]) == std::vector<std::uint32_t>{1, 5});
    CHECK(frames_site::locks_of(sent[2]) == std::vector<std::uint32_t>{4});
    for (const frame& one : sent) {
        CHECK(one.to == 0b001);
        CHECK(one.awaited == 1);
    }
    CHECK(it.box.drop(0, false).empty()); // they have left
}

TEST_CASE("a call that has no masters left is not sent, and does not stay") {
    frames_site it;
    it.add_all({{.number = 1, .to = 0b011}, {.number = 2}});
    CHECK(it.box.drop(0, false).size() == 2);
    CHECK(it.box.drop(1, false).size() == 2);
    CHECK(!it.box.empty());
    CHECK(it.calls() == calls{{2}});
    CHECK(it.box.empty());
    it.add({.number = 3}); // in its place
    const std::vector<frame> sent = it.flush(1);
    CHECK(frames_site::locks_of(sent[0]) == std::vector<std::uint32_t>{3});
    CHECK(sent[0].to == three_masters);
    CHECK(sent[0].awaited == 3);
}

TEST_CASE("after a master is gone, commands for the others join what is left") {
    frames_site it;
    it.add({.number = 1});
    it.box.drop(2, false);
    it.add_all({{.number = 2}, {.number = 3, .to = 0b011}});
    CHECK(it.calls() == calls{{1, 3}, {2}});
}

TEST_CASE("a call names all keys, then what each lock has, then what is checked") {
    const std::string acquire_text(guarded_acquire.text);
    const std::string acquire_sha1(guarded_acquire.sha1);
    const std::string extend_sha1(guarded_extend.sha1);
    const std::string release_sha1(guarded_release.sha1);
    CHECK(
        line_of({{.ttl = 12'345ms}}, command_variant::eval)
        == "EVAL " + acquire_text + " 2 the:epoch lock1 12345 0 token1 run 30000000 limit");
    // An acquire has no fencing token yet.
    CHECK(
        line_of(
            {{.number = 1, .fence_ttl = 90s}, {.number = 2, .fence_ttl = 90s}},
            command_variant::evalsha)
        == "EVALSHA " + acquire_sha1
               + " 5 the:epoch lock1 fence1 lock2 fence2 10000 90000 17000 16000 token1 token2 run "
                 "30000000 "
                 "limit");
    CHECK(
        line_of(
            {
                {.kind = extends, .number = 1, .token = 18, .fence_ttl = 90s},
                {.kind = extends, .number = 2, .token = 4'000'000'000'000'001, .fence_ttl = 90s},
            },
            command_variant::evalsha)
        == "EVALSHA " + extend_sha1
               + " 5 the:epoch lock1 fence1 lock2 fence2 10000 90000 token1 token2 18 "
                 "4000000000000001 run 30000000 limit");
    CHECK(
        line_of(
            {{.kind = extends, .number = 1}, {.kind = extends, .number = 2}}, command_variant::eval)
        == "EVAL " + std::string(guarded_extend.text)
               + " 3 the:epoch lock1 lock2 10000 0 token1 token2 run 30000000 limit");
    // A removal checks nothing of its master, and says which are published.
    CHECK(
        line_of(
            {
                {.kind = removes, .number = 1, .token = 17, .fence_ttl = 90s, .publishes = true},
                {.kind = removes, .number = 2, .token = 18, .fence_ttl = 90s},
                {.kind = removes, .number = 3, .token = 19, .fence_ttl = 90s, .publishes = true},
            },
            command_variant::evalsha)
        == "EVALSHA " + release_sha1
               + " 6 lock1 fence1 lock2 fence2 lock3 fence3 90000 token1 token2 token3 17 18 19 "
                 "101");
    CHECK(
        line_of(
            {{.kind = removes, .number = 1}, {.kind = removes, .number = 2}}, command_variant::eval)
        == "EVAL " + std::string(guarded_release.text) + " 2 lock1 lock2 0 token1 token2 00");
}

TEST_CASE("an extension of the plain protocol checks nothing of its master") {
    frames_site it;
    it.add_all({{.kind = extends, .number = 1}, {.kind = extends, .number = 2}});
    const std::vector<frame> sent = it.flush(1);
    std::string bytes;
    it.box.write(bytes, sent[0], command_variant::evalsha, {}, {});
    CHECK(
        unit::virtual_master::lines_of(bytes)
        == std::vector<std::string>{"EVALSHA extend 2 lock1 lock2 10000 token1 token2"});
}

TEST_CASE("a master that may not vote any more gets no native acquire, and all else") {
    frames_site it;
    it.add_all(
        {{.number = 1, .native = true},
         {.number = 2},
         {.kind = removes, .number = 3},
         {.kind = extends, .number = 4}});
    const std::vector<frames::unsent> dropped = it.box.drop(1, true);
    REQUIRE(dropped.size() == 1);
    CHECK(dropped[0].item.claim.index == 1);
    CHECK(dropped[0].kind == acquires);
    for (const frame& one : it.flush()) {
        CHECK(((one.to & 2U) != 0) != one.native);
    }
}

TEST_CASE("a removal is published on the masters that it names") {
    frames_site it;
    it.add_all({{.kind = removes, .number = 1, .publishes = true}, {.kind = removes, .number = 2}});
    const std::vector<frame> sent = it.flush(1);
    CHECK(words_of(it.box, sent[0], command_variant::evalsha, 0).back() == "00");
    CHECK(words_of(it.box, sent[0], command_variant::evalsha, 1).back() == "10");
    CHECK(words_of(it.box, sent[0], command_variant::evalsha, 2).back() == "00");
}

TEST_CASE("in the plain protocol a call is one SET after another") {
    frames_site it;
    it.add_all({{.number = 1, .native = true}, {.number = 2, .native = true}});
    const std::vector<frame> sent = it.flush(1);
    CHECK(sent[0].native);
    std::string bytes;
    it.box.write(bytes, sent[0], command_variant::native, "the:epoch", {});
    for (const std::string number : {"1", "2"}) {
        CHECK(
            unit::virtual_master::take_command(bytes)
            == arguments{"SET", "lock" + number, "token" + number, "NX", "PX", "10000"});
    }
    CHECK(bytes.empty());
    // Its place is used again for a script.
    for (std::size_t i = 0; i < 3; ++i) {
        it.box.done(*it.box.find(sent[0].self));
    }
    it.add({.number = 3});
    const std::vector<frame> next = it.flush(1);
    CHECK(!next[0].native);
    CHECK(words_of(it.box, next[0], command_variant::evalsha)[4] == "lock3");
}

TEST_CASE("the largest call has a word for each of its locks") {
    for (const command_kind kind : {acquires, removes, extends}) {
        for (const bool fenced : {false, true}) {
            frames_site it;
            for (std::uint32_t i = 1; i <= frame::locks_max; ++i) {
                it.add(
                    {.kind = kind,
                     .number = i,
                     .token = i,
                     .fence_ttl = fenced ? 90s : 0s,
                     .publishes = i % 2 == 0});
            }
            const arguments words = words_of(it.box, it.flush().at(0), command_variant::evalsha);
            const std::size_t keys = (fenced ? 128 : 64) + (kind == removes ? 0 : 1);
            const std::size_t tokens = fenced && kind != acquires ? 128 : 64;
            CHECK(words[2] == std::to_string(keys));
            const std::size_t first_counter = fenced && kind == acquires ? 2 : 0;
            CHECK(words.size() == 3 + keys + first_counter + tokens + (kind == removes ? 2 : 5));
            if (kind == removes) {
                CHECK(words.back().size() == 64);
                CHECK(words.back().substr(60) == "0101");
            }
        }
    }
}

}} // namespace frame_test
