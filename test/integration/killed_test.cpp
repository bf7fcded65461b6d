// A holder and a waiter of each primitive, in processes that get a SIGKILL.
#include "blocking_site.hpp"
#include "family_member.hpp"
#include "guarded_quorum.hpp"
#include "integration/doomed_worker_path.hpp"

namespace redlock::test::blocking_use {

namespace {

constexpr const char* family[] = {"resources", "reader", "writer", "slot", "leader"};

class doomed {
public:
    doomed(const site& where, const std::string& kind, milliseconds ttl) {
        std::vector<std::string> line = {DOOMED_WORKER, kind, std::to_string(ttl.count())};
        for (const std::string& url : where.masters.urls()) {
            line.push_back(url);
        }
        process_ = child_process(line, output());
    }

    bool says(const std::string& what) {
        return soon([&] {
            const std::string text = read_text(output());
            INFO(text);
            REQUIRE(process_.running());
            return contains(text, what + "\n");
        });
    }

    void kill() { process_.kill(); }
    void stop() { process_.stop(); }
    void resume() { process_.resume(); }

private:
    std::filesystem::path output() const { return dir_.path() / "output"; }

    temp_dir dir_;
    child_process process_; // ended before the directory goes
};

} // namespace

TEST_CASE("each primitive of a killed holder is free after its lease") {
    site here(3, guarded_and_brisk);
    const auto other = here.client();
    for (const std::string kind : family) {
        INFO(kind);
        doomed holder(here, kind, 1500ms);
        REQUIRE(holder.says("holds"));
        CHECK(error_of([&] { take_member(*other, rival_of(kind), once()); }) == errc::contended);
        holder.kill();
        // Far more than the lease and the next look: it throws if it has not got it by then.
        std::shared_ptr<lock> mine = take_member(*other, rival_of(kind), waiting(30s));
        mine.reset();
        CHECK(take_member(*other, kind, waiting(30s)) != nullptr);
    }
}

TEST_CASE("a holder that is stopped past its lease learns that it was stalled") {
    site here(3, guarded_and_brisk);
    const auto other = here.client();
    doomed holder(here, "writer", 1500ms);
    REQUIRE(holder.says("holds"));
    holder.stop();
    CHECK(take_member(*other, "reader", waiting(30s)) != nullptr); // the lease has ended
    holder.resume();
    CHECK(holder.says("stalled"));
}

TEST_CASE("a killed waiter for any primitive keeps no other client out") {
    site here(3, guarded_and_brisk);
    const auto holder = here.client();
    const auto other = here.client();
    for (const std::string kind : family) {
        INFO(kind);
        std::shared_ptr<lock> held = take_member(*holder, rival_of(kind), waiting(30s));
        doomed waiter(here, kind, 10s);
        REQUIRE(waiter.says("waits"));
        waiter.kill();
        if (rival_of(kind) == "reader") { // a reader does not even wait for the release
            CHECK(take_member(*other, "reader", waiting(30s)) != nullptr);
        }
        held.reset();
        std::shared_ptr<lock> theirs = take_member(*other, rival_of(kind), waiting(30s));
        theirs.reset();
        CHECK(take_member(*holder, kind, waiting(30s)) != nullptr);
    }
}

} // namespace redlock::test::blocking_use
