// One socket by itself, and a system that refuses to send for once.
#include "net/ready_set.hpp"
#include "net/socket.hpp"
#include "support/run.hpp"
#include "support/test.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <mutex>

namespace asio = boost::asio;
using namespace redlock;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::string_view lost_bytes = "the bytes that the system refuses\n";

// Set on the test's thread, which is the only one that sends these bytes.
int refusal = 0;

} // namespace

// In place of the C library's, in the whole program: a refusal that passes cannot be had from a
// socket.
extern "C" ssize_t send(int socket, const void* bytes, std::size_t size, int flags) {
    if (refusal != 0 && size == lost_bytes.size()
        && std::memcmp(bytes, lost_bytes.data(), size) == 0) {
        errno = std::exchange(refusal, 0);
        return -1;
    }
    return ::sendto(socket, bytes, size, flags, nullptr, 0);
}

namespace {

class owner_of_one final : public net::socket_callbacks {
public:
    std::size_t opened = 0;
    std::vector<std::string> closed;
    std::string received;
    std::function<void()> after_all;

    void socket_opened(std::size_t) override { ++opened; }
    void socket_closed(std::size_t, std::string_view why) override { closed.emplace_back(why); }
    void all_received() override { after_all ? after_all() : void(); }
    void socket_received(std::size_t, std::span<const char> bytes) override {
        received.append(bytes.data(), bytes.size());
    }
    void socket_written(std::size_t, std::size_t) override {}
    void time_came() override {}
};

// A connection to a socket of the test's own.
struct pair {
    explicit pair([[maybe_unused]] bool watched) {
        asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
        const endpoint where(
            "redis://127.0.0.1:" + std::to_string(acceptor.local_endpoint().port()));
        one.emplace(io.get_executor(), 0, where, no_tls, "", *owner);
#if REDLOCK_LINUX
        if (watched) {
            ready.emplace(io.get_executor(), *owner, [this](std::size_t) { one->ready_to_move(); });
            one->be_watched(*ready);
            owner->after_all = [this] { ready->wait(); };
        }
#endif
        {
            const std::lock_guard lock(owner->guard);
            one->open();
        }
        acceptor.accept(peer);
        test::run_until(io, [&] { return owner->opened == 1; });
    }

    std::size_t write(std::string_view text) {
        std::string bytes(text);
        const std::lock_guard lock(owner->guard);
        return one->write(bytes);
    }

    std::string all_that_came() {
        std::string out;
        std::array<char, 256> buffer{};
        for (;;) {
            boost::system::error_code error;
            const std::size_t size = peer.read_some(asio::buffer(buffer), error);
            out.append(buffer.data(), size);
            if (error) {
                return out;
            }
        }
    }

    asio::io_context io;
    std::shared_ptr<owner_of_one> owner = std::make_shared<owner_of_one>();
    asio::ip::tcp::socket peer{io};
    net::tls_files no_tls{{}};
#if REDLOCK_LINUX
    std::optional<net::ready_set> ready;
#endif
    std::optional<net::socket> one;
};

#if REDLOCK_LINUX
constexpr std::array ways{true, false};
#else
constexpr std::array ways{false};
#endif

} // namespace

TEST_CASE("an address that swallows an attempt does not keep a master out") {
    net::address_order<int> order;
    const auto sorted = [&](std::vector<int> found) {
        order.sort(found);
        return found;
    };
    using addresses = std::vector<int>;
    CHECK(sorted({1, 2, 3}) == addresses{1, 2, 3});
    order.trying({1, 2, 3}, 0); // and is cut off
    CHECK(sorted({1, 2, 3}) == addresses{2, 3, 1});
    order.trying({2, 3, 1}, 0);
    order.trying({2, 3, 1}, 1);
    CHECK(sorted({1, 2, 3}) == addresses{1, 2, 3});
    order.trying({1, 2, 3}, 0);
    order.trying({1, 2, 3}, 1);
    order.worked(2);
    CHECK(sorted({1, 2, 3}) == addresses{2, 3, 1});
    CHECK(sorted({4, 5}) == addresses{4, 5}); // the name has moved
    CHECK(sorted({}).empty());
}

TEST_CASE("after a refused write nothing more is written, whichever comes first") {
    for (const bool watched : ways) {
        CAPTURE(watched);
        pair p(watched);
        CHECK(p.write("before\n") == 7);
        refusal = ENOBUFS;
        CHECK(p.write(lost_bytes) == 0);
        CHECK(refusal == 0);
        // Another event of the owner's, before the loop had a turn.
        CHECK(p.owner->closed.empty()); // never from inside a call
        CHECK_FALSE(p.one->writable());
        CHECK(p.write("after\n") == 0);
        test::run_until(p.io, [&] { return !p.owner->closed.empty(); });
        CHECK_FALSE(p.one->writable());
        CHECK(p.write("long after\n") == 0);
        CHECK(p.all_that_came() == "before\n");
        REQUIRE(p.owner->closed.size() == 1);
        CHECK_THAT(p.owner->closed[0], ContainsSubstring("write: "));
    }
}

TEST_CASE("what a master said before it closed is read, also after a refused write") {
    constexpr std::string_view said = "-ERR max number of clients reached\r\n";
    for (const bool watched : ways) {
        CAPTURE(watched);
        pair p(watched);
        asio::write(p.peer, asio::buffer(said));
        p.peer.close();
        refusal = EPIPE;
        CHECK(p.write(lost_bytes) == 0);
        test::run_until(p.io, [&] { return !p.owner->closed.empty(); });
        CHECK(p.owner->received == said);
        CHECK(p.owner->closed == std::vector<std::string>{"the master closed the connection"});
    }
}

TEST_CASE(
    "a socket that is opened again after a refused write tells nothing of the old connection") {
    for (const bool watched : ways) {
        CAPTURE(watched);
        pair p(watched);
        refusal = ENOBUFS;
        CHECK(p.write(lost_bytes) == 0);
        {
            const std::lock_guard lock(p.owner->guard);
            p.one->close();
        }
        p.io.restart();
        p.io.poll();
        CHECK(p.owner->closed.empty());
        CHECK(p.all_that_came().empty());
    }
}
