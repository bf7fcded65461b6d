// Quoted by docs/testing_kit.md.

#include <redlock/lock_manager.hpp>
#include <redlock/testing.hpp>

#include <boost/asio/io_context.hpp>
#include <catch2/catch_test_macros.hpp>

#include <chrono>

namespace snippets::testing_kit {

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct worker {
    explicit worker(redlock::lock_manager& manager);
    void start();
    bool stopped() const;
};

TEST_CASE("a worker stops before its lease ends") {
    redlock::testing::virtual_quorum quorum; // 3 masters
    worker tested(quorum.manager());         // code that takes a lock_manager&
    tested.start();
    quorum.advance(1h); // it works, its lock is renewed
    quorum.master(0).kill();
    quorum.master(1).hang();
    REQUIRE(quorum.advance_until([&] { return tested.stopped(); }));
    CHECK(quorum.keys_of("crawler") > 0); // it stopped before its lease ended
}

void with_real_masters(asio::io_context& io) {
    redlock::testing::masters masters; // 3 of them
    redlock::lock_manager manager(io.get_executor(), masters.make_config());
    masters[0].kill();
    masters[1].hang();    // SIGSTOP; resume() undoes it
    masters[0].restart(); // same address, empty unless `durable`
    masters[2].cut();     // breaks the connections
}

} // namespace snippets::testing_kit
