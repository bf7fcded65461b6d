// A call for several locks does what as many calls for one lock each do, in the same order: random
// calls on random keys, on real Lua.

#include "core/bytes/guarded_scripts.hpp"
#include "memory/server.hpp"
#include "support/test.hpp"

#include <cctype>
#include <random>

namespace frame_effects_test { namespace {

namespace core = redlock::core;
namespace memory = redlock::testing::memory;

using texts = std::vector<std::string>;

constexpr std::int64_t present = 1'700'000'000'123'456;
constexpr std::int64_t present_ms = present / 1000;
constexpr std::int64_t second = 1'000'000;

// Fixed numbers, whatever the standard library.
class dice {
public:
    explicit dice(std::uint64_t seed) : numbers_(seed) {}
    std::size_t below(std::size_t bound) { return numbers_() % bound; }
    bool percent(std::size_t chance) { return below(100) < chance; }
    template <typename T>
    const T& one_of(const std::vector<T>& all) {
        return all[below(all.size())];
    }

private:
    std::mt19937_64 numbers_;
};

struct lock_arguments {
    std::string name;
    std::string token;
    std::string counter;
    bool publishes = false;
};

struct call {
    const core::script* what = nullptr;
    bool fenced = false;
    std::string run;
    std::string quarantine;
    std::string not_after;
    std::vector<lock_arguments> locks;
};

// The same for some of its locks only.
texts words_of(const call& all, std::size_t first, std::size_t count) {
    const bool removes = all.what == &core::guarded_release;
    const bool plain = all.what == &core::compare_and_extend_each;
    const std::vector<lock_arguments> locks(
        all.locks.begin() + static_cast<std::ptrdiff_t>(first),
        all.locks.begin() + static_cast<std::ptrdiff_t>(first + count));
    texts words{
        "EVAL",
        std::string(all.what->text),
        std::to_string(count * (all.fenced ? 2 : 1) + (removes || plain ? 0 : 1))};
    if (!removes && !plain) {
        words.emplace_back("epoch");
    }
    for (const lock_arguments& one : locks) {
        words.push_back(one.name);
        if (all.fenced) {
            words.push_back(one.name + ":f");
        }
    }
    if (!removes) {
        words.emplace_back("10000");
    }
    if (!plain) {
        words.emplace_back(all.fenced ? "90000" : "0");
    }
    if (all.fenced && all.what == &core::guarded_acquire) {
        words.push_back(std::to_string(present + 2 * second));
        words.push_back(all.quarantine);
    }
    std::string mask;
    for (const lock_arguments& one : locks) {
        words.push_back(one.token);
        mask += one.publishes ? '1' : '0';
    }
    for (const lock_arguments& one : locks) {
        if (all.fenced && all.what != &core::guarded_acquire) {
            words.push_back(one.counter);
        }
    }
    if (removes) {
        words.push_back(mask);
    } else if (!plain) {
        words.insert(words.end(), {all.run, all.quarantine, all.not_after});
    }
    return words;
}

// The keys of a master. Some have expired, or do so at the end of this millisecond.
memory::store random_keys(dice& random) {
    memory::store data;
    const auto put = [&](const std::string& name, const texts& values) {
        if (random.percent(30)) {
            return;
        }
        memory::entry& made = data.put(name);
        if (random.percent(10)) {
            made.is = memory::entry::type::hash;
        } else {
            made.value = random.one_of(values);
        }
        made.expires_ms = random.one_of(std::vector<std::int64_t>{
            present_ms - 5,
            present_ms - 1,
            present_ms,
            present_ms + 7,
            present_ms + 9'999,
            present_ms + 10'000,
            present_ms + 20'000,
            memory::entry::no_expiry});
    };
    for (const std::string name : {"a", "b", "c", "d"}) {
        put(name, {"mine", "mine", "mine", "other"});
        put(name + ":f",
            {"7",
             "abc",
             "50.0",
             "51",
             std::to_string(present - 20 * second),
             std::to_string(present + 5 * second)});
    }
    const texts records{
        "4 run - " + std::to_string(present - 100 * second) + " 0 1d",
        "4 run - " + std::to_string(present - second) + " 0 1d",
        "4 else - 0 0 1d",
        "4 of a version to come"};
    if (!random.percent(5)) {
        memory::entry& record = data.put("epoch");
        record.value = random.percent(80) ? records.front() : random.one_of(records);
        record.is = random.percent(3) ? memory::entry::type::hash : memory::entry::type::text;
    }
    return data;
}

call random_call(const core::script& what, bool fenced, dice& random) {
    call made{
        .what = &what,
        .fenced = fenced,
        .run = "run",
        .quarantine = random.percent(30) ? "0" : "30000000",
        .not_after = "0",
        .locks = {}};
    if (random.percent(30)) {
        made.not_after = std::to_string(
            present + random.one_of(std::vector<std::int64_t>{-1, 0, 5 * second, 5 * second}));
    }
    for (std::size_t left = 1 + random.below(6); left > 0; --left) { // maybe one of them twice
        made.locks.push_back(
            {random.one_of(texts{"a", "b", "c", "d"}),
             random.one_of(texts{"mine", "mine", "mine", "yours"}),
             random.one_of(texts{"1", "50", "51"}),
             random.percent(50)});
    }
    return made;
}

// A master, and what it has told.
struct site {
    site(memory::lua_machine& lua, const memory::store& keys, bool refuses, std::int64_t listeners)
        : master(lua) {
        master.data = keys;
        master.refuses_publish = refuses;
        master.tell = [this, listeners](std::string_view channel, std::string_view text) {
            told.push_back(std::string(channel) + " " + std::string(text));
            return listeners;
        };
    }
    memory::answer ask(const texts& words) {
        const std::vector<std::string_view> views(words.begin(), words.end());
        return master.execute(views, present);
    }
    texts keys() const {
        texts out;
        for (const memory::entry& one : master.data.entries()) {
            if (one.expires_ms >= present_ms) {
                const bool is_text = one.is == memory::entry::type::text;
                out.push_back(
                    one.key + "=" + (is_text ? one.value : "#") + "/"
                    + std::to_string(one.expires_ms));
            }
        }
        std::ranges::sort(out);
        return out;
    }

    memory::server master;
    texts told;
};

// What a reply says of each lock, with the clock.
texts statuses(const call& what, const memory::answer& said, std::size_t locks) {
    REQUIRE(said.what == memory::answer::kind::array);
    REQUIRE(said.items.size() >= 2);
    const bool forgot = what.what == &core::guarded_extend && said.items[0].number == 2;
    if (said.items[0].number != 1 && !forgot) {
        REQUIRE(said.items.size() == 3);
        std::string whole = "not executed: " + said.describe();
        std::ranges::replace(whole, '\n', ' ');
        return texts(locks, whole);
    }
    const std::string clock = (forgot ? " of a new memory at " : " at ") + said.items[1].describe();
    texts out;
    if (what.what == &core::guarded_acquire && what.fenced) {
        for (std::size_t i = 2; i < said.items.size(); ++i) {
            out.push_back(said.items[i].describe() + clock);
        }
        REQUIRE(out.size() == locks);
        return out;
    }
    out.assign(locks, "granted" + clock);
    std::int64_t before = 0;
    for (std::size_t i = 2; i < said.items.size(); i += 2) {
        const std::int64_t lock = said.items[i].number;
        REQUIRE(lock > before);
        REQUIRE(lock <= static_cast<std::int64_t>(locks));
        REQUIRE(i + 1 < said.items.size());
        out[static_cast<std::size_t>(lock - 1)] = said.items[i + 1].describe() + clock;
        before = lock;
    }
    return out;
}

std::string kind_of(const std::string& status) {
    return status.starts_with("granted") || std::isdigit(static_cast<unsigned char>(status[0])) != 0
               ? "a number"
           : status[0] == '-' ? "below zero"
                              : status.substr(0, status.find(' '));
}

TEST_CASE("a call for several locks does what calls for one lock each do") {
    memory::lua_machine lua;
    for (const core::script* const what :
         {&core::guarded_acquire,
          &core::guarded_extend,
          &core::guarded_release,
          &core::compare_and_extend_each}) {
        const bool checks = what == &core::guarded_acquire || what == &core::guarded_extend;
        for (const bool fenced : {false, true}) {
            if (fenced && what == &core::compare_and_extend_each) {
                continue;
            }
            std::map<std::string, int> met;
            for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
                dice random(seed);
                const memory::store keys = random_keys(random);
                const call all = random_call(*what, fenced, random);
                const bool refuses = random.percent(20);
                const std::int64_t listeners = random.percent(50) ? 2 : 0;
                const std::size_t locks = all.locks.size();
                CAPTURE(std::string_view(what->sha1), fenced, seed, locks);

                site together(lua, keys, refuses, listeners);
                const texts said = statuses(all, together.ask(words_of(all, 0, locks)), locks);
                site apart(lua, keys, refuses, listeners);
                texts said_apart;
                for (std::size_t i = 0; i < locks; ++i) {
                    said_apart.push_back(statuses(all, apart.ask(words_of(all, i, 1)), 1).front());
                }
                CHECK(said == said_apart);
                CHECK(together.keys() == apart.keys());
                CHECK(together.told == apart.told);
                for (const std::string& one : said) {
                    ++met[kind_of(one)];
                }
            }
            // The cases are not all of one sort.
            CAPTURE(std::string_view(what->sha1), fenced);
            CHECK(met["a number"] > 100);
            CHECK(met["below zero"] > 100);
            CHECK((met["not"] > 100 || !checks));
            CHECK((met["WRONGTYPE"] > 50 || (what == &core::guarded_acquire && !fenced)));
        }
    }
}

}} // namespace frame_effects_test
