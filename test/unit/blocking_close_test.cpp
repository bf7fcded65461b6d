// Blocking calls behind the end of their manager, which needs no masters to be asked.

#include <redlock/blocking.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>

namespace blocking_close_test {

using namespace redlock;

TEST_CASE("a manager that its asynchronous side has closed answers each call, and waits for none") {
    config settings;
    settings.masters = {"redis://127.0.0.1:1"}; // nobody is there
    blocking::manager manager(settings);
    blocking::mutex mutex(manager, "r");
    const auto close = [&] {
        manager.call([&](auto token) { return manager.async().async_close(std::move(token)); });
    };
    const auto code_of = [](const auto& f) {
        try {
            f();
        } catch (const boost::system::system_error& thrown) {
            return thrown.code();
        }
        return error_code();
    };
    close();
    for (int i = 0; i < 20; ++i) { // the thread would end between two of them
        CHECK(!code_of(close));
        CHECK(code_of([&] { mutex.lock(); }) == errc::closed);
        CHECK(code_of([&] { manager.ready(std::chrono::seconds(1)); }) == errc::closed);
    }
}

} // namespace blocking_close_test
