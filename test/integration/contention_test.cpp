// Four processes with eight workers each want one lock: never two at once, and all get their turns.
#include "blocking_site.hpp"
#include "integration/contention_worker_path.hpp"

namespace redlock::test { namespace {

constexpr int processes = 4;
constexpr int workers = 8;

class crowd {
public:
    crowd(const quorum_of_masters& masters, int rounds, milliseconds max_ttl)
        : expected_(static_cast<std::size_t>(processes * workers * rounds)) {
        for (int i = 0; i < processes; ++i) {
            std::vector<std::string> line = {
                CONTENTION_WORKER,
                dir_.path().string(),
                std::to_string(workers),
                std::to_string(rounds),
                std::to_string(max_ttl.count())};
            for (const std::string& url : masters.urls()) {
                line.push_back(url);
            }
            children_.push_back(child_process(line, output(i)));
        }
    }

    // Whether this number of turns has been taken.
    bool reached(std::size_t count) const {
        return blocking_use::soon([&] { return turns().size() >= count; }, 60s);
    }

    void judge() {
        for (int i = 0; i < processes; ++i) {
            CHECK(ended(children_[static_cast<std::size_t>(i)]));
            CHECK(text_of(output(i)) == "");
        }
        std::vector<turn> all = turns();
        CHECK(all.size() == expected_);
        std::ranges::sort(all, {}, &turn::began);
        for (std::size_t i = 1; i < all.size(); ++i) {
            // The one before ended last of all so far: else an earlier pair has failed.
            INFO("process " << all[i - 1].process << ", then " << all[i].process);
            CHECK(all[i - 1].ended <= all[i].began);
        }
    }

private:
    struct turn {
        long long began;
        long long ended;
        int process;
    };

    // Of whole lines.
    std::vector<turn> turns() const {
        std::ifstream file(dir_.path() / "turns");
        std::vector<turn> result;
        for (std::string line; std::getline(file, line) && !file.eof();) {
            turn& last = result.emplace_back();
            std::istringstream(line) >> last.began >> last.ended >> last.process;
        }
        return result;
    }

    std::filesystem::path output(int i) const {
        return dir_.path() / ("output-" + std::to_string(i));
    }

    static bool ended(child_process& child) {
        return blocking_use::soon([&] { return !child.running(); }, 60s);
    }

    temp_dir dir_;
    std::size_t expected_;
    std::vector<child_process> children_; // ended before the directory goes
};

TEST_CASE("4 processes with 8 workers each never overlap while masters die, hang and come back") {
    constexpr auto max_ttl = 2s;
    constexpr int rounds = 8;
    quorum_of_masters masters(5);
    crowd contenders(masters, rounds, max_ttl);
    CHECK(contenders.reached(10));
    masters[0].kill();
    CHECK(contenders.reached(40));
    masters[1].hang();
    CHECK(contenders.reached(70));
    masters[0].restart_empty();
    CHECK(contenders.reached(100));
    masters[1].resume();
    CHECK(contenders.reached(130));
    masters[2].restart_empty();
    contenders.judge();
}

}} // namespace redlock::test
