// Two processes on masters in memory, in virtual time.
#pragma once

#include "support/error_of.hpp"
#include "support/test.hpp"

#include <redlock/testing.hpp>

namespace redlock::test::in_memory {

using boost::asio::error::operation_aborted;

inline acquire_options once() {
    return {.ttl = 10s, .wait = wait_for::none()};
}

inline acquire_options waiting() {
    return {.ttl = 10s, .wait = wait_for::forever()};
}

inline acquire_options reading() {
    return {.ttl = 10s, .wait = wait_for::none(), .mode = lock_mode::shared};
}

inline error_code error_of_acquire(
    blocking::manager& by, const target& what, const acquire_options& options = once()) {
    return error_of([&] { static_cast<void>(by.acquire(what, options)); });
}

struct two_processes {
    testing::virtual_quorum quorum;
    blocking::manager mine = quorum.make_blocking_manager();
    blocking::manager theirs = quorum.make_blocking_manager();

    explicit two_processes(const config& settings = {}) : quorum(3, settings) {
        REQUIRE(mine.ready(10s));
        REQUIRE(theirs.ready(10s));
    }

    static std::vector<std::string> keys() {
        std::vector<std::string> result;
        for (const char* const suffix :
             {"{r}", "{s}", "{r}:readers", "{r}:intent", "{r}:slot:0", "{r}:slot:1"}) {
            result.push_back(std::string("redlock:") + suffix);
        }
        return result;
    }
    std::size_t count_keys() {
        std::size_t found = 0;
        for (std::size_t i = 0; i < quorum.size(); ++i) {
            for (const std::string& key : keys()) {
                found += quorum.master(i).command({"EXISTS", key}) == "1" ? 1U : 0U;
            }
        }
        return found;
    }
    bool no_key_left() {
        return quorum.advance_until([this] { return count_keys() == 0; }, 1s);
    }
    void remove_keys() {
        for (std::size_t i = 0; i < quorum.size(); ++i) {
            for (const std::string& key : keys()) {
                quorum.master(i).command({"DEL", key});
            }
        }
    }
    void after(std::chrono::nanoseconds span, std::function<void()> f) {
        quorum.async_sleep(span, [f = std::move(f)](error_code) { f(); });
    }
};

} // namespace redlock::test::in_memory
