// Masters whose wall clocks are stepped, (stepped_clock.cpp): what they expire, and what they
// refuse.
#include "faults/stepped_clock_path.hpp"
#include "integration/guarded_quorum.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace redlock::test { namespace {

// What children inherit while it lives.
class environment {
public:
    environment(const char* name, const std::string& value) : name_(name) {
        ::setenv(name, value.c_str(), 1);
    }
    environment(const environment&) = delete;
    environment& operator=(const environment&) = delete;
    ~environment() { ::unsetenv(name_); }

private:
    const char* name_;
};

long long clock_of(const master_process& master) {
    return std::stoll(master.command({"TIME"})); // its first line: seconds
}

// Three masters with clocks of their own. Skips the test where a server does not load these.
class clockwork {
public:
    clockwork() {
        for (std::size_t i = 0; i < 3; ++i) {
            step(i, 0s);
            const environment preload("LD_PRELOAD", STEPPED_CLOCK);
            const environment file("REDLOCK_CLOCK_FILE", file_of(i).string());
            masters.emplace_back();
        }
        settings = config_for({});
        for (const master_process& master : masters) {
            settings.masters.emplace_back(master.url());
        }
        guarded(settings);
        settings.clock_offset_bound = 0ms;
        settings.health_check_interval = 200ms;
        if (!works()) {
            SKIP("the server does not load a clock of ours");
        }
    }

    // Against the true time.
    void step(std::size_t i, std::chrono::microseconds offset) {
        const std::int64_t us = offset.count();
        const int file = ::open(file_of(i).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        const bool written = ::pwrite(file, &us, sizeof us, 0) == sizeof us;
        ::close(file);
        REQUIRE(written);
    }

private:
    // Whether a step is seen over there: a server that is linked statically would not see it.
    bool works() {
        const long long before = clock_of(masters[0]);
        step(0, 5'000s);
        const long long ahead = clock_of(masters[0]) - before;
        step(0, 0s);
        return ahead >= 5'000 && clock_of(masters[0]) - before < 1'000;
    }

    std::filesystem::path file_of(std::size_t i) const {
        return dir_.path() / ("clock-" + std::to_string(i));
    }

    temp_dir dir_;

public:
    std::vector<master_process> masters;
    config settings;
};

TEST_CASE("a minority's clock that is stepped forward loses its vote, not the lock") {
    clockwork site;
    asio::io_context io;
    client me(io, site.settings);
    client other(io, site.settings);
    me.until_admitted(3);
    other.until_admitted(3);
    lock mine = me.take("r", with_token(once_unrenewed(20s)));
    run_until(io, [&] { return exists(site.masters[0], lock_key("r")); });
    site.step(0, 3600s);
    run_until(io, [&] { return !exists(site.masters[0], lock_key("r")); }); // expired over there
    CHECK(other.acquire("r", with_token(once()))->error == errc::contended);
    CHECK(mine.held());
    // It refuses commands as late until its clock is known again. Then the vote is healed.
    run_until(io, [&] {
        CHECK(me.extend(mine, 20s) == error_code());
        return me.count().masters[0].healed > 0;
    });
    CHECK(me.count().masters[0].late > 0);
    CHECK(site.masters[0].command({"GET", lock_key("r")}) == mine.secret());
    const std::uint64_t token = mine.fencing_token();
    CHECK(me.release(mine) == release_result::released);
    lock next = other.take("r", with_token(waiting(20s)));
    CHECK(next.fencing_token() > token);
}

TEST_CASE("a clock that is stepped back is noticed by the next grant, and the master quarantined") {
    clockwork site;
    site.settings.quarantine = true;
    site.settings.max_ttl = 6s;
    for (std::size_t i = 0; i < 3; ++i) {
        // Their memories are older than any lease, and younger than the step.
        site.masters[i].declare_new();
        const std::string born = std::to_string((clock_of(site.masters[i]) - 1'000) * 1'000'000);
        const std::string record = site.masters[i].command({"GET", record_key});
        site.masters[i].command(
            {"SET", record_key, record.substr(0, record.find(" - ") + 3) + born + " 0 0"});
    }
    asio::io_context io;
    client me(io, site.settings);
    me.until_admitted(3);
    lock mine = me.take("r", with_token(once(5s)));
    const std::uint64_t token = mine.fencing_token();
    CHECK(me.release(mine) == release_result::released);

    site.step(0, -5000s);
    site.step(1, -5000s);
    const acquisition_ptr refused = me.acquire("r", with_token(once(5s)));
    INFO(refused->explained());
    CHECK(refused->error == errc::no_quorum);
    CHECK(count_votes(refused->why, vote::quarantined) == 2);
    client newcomer(io, site.settings);
    until_state(io, newcomer, 0, master_state::quarantined);
    until_state(io, newcomer, 1, master_state::quarantined);
    CHECK(newcomer.acquire("r", with_token(once(5s)))->error == errc::no_quorum);

    // Set right again: what they wrote down in between lies in the past, so they stay out only for
    // as long as that says, and the order of the tokens holds.
    site.step(0, 0s);
    site.step(1, 0s);
    const acquisition_ptr got = newcomer.acquire("r", with_token(waiting(25s, 5s)));
    REQUIRE(*got);
    CHECK(got->lock.fencing_token() > token);
}

}} // namespace redlock::test
