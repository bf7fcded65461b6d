// A mutex that its owner may enter again: functions that each lock, and call each other.
//
//     reentrant redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103

#include <redlock/blocking.hpp>
#include <redlock/reentrant_mutex.hpp>

#include <chrono>
#include <exception>
#include <iostream>

namespace {

class ledger {
public:
    explicit ledger(redlock::blocking::manager& manager)
        : manager_(manager),
          mutex_(manager.async(), "ledger") {}

    // Each of them locks. The owner is an object that goes from one to the next: not the thread,
    // so it may be another one each time.
    void transfer(const redlock::reentrant_owner& who, int amount) {
        const redlock::reentrant_hold hold = enter(who);
        book(who, -amount);
        book(who, amount);
    }

    void book(const redlock::reentrant_owner& who, int amount) {
        const redlock::reentrant_hold hold = enter(who);
        std::cout << "booked " << amount << " at depth " << hold.depth() << '\n';
    }

private:
    redlock::reentrant_hold enter(const redlock::reentrant_owner& who) {
        return manager_.call(
            [&](auto token) { return mutex_.async_acquire(who, std::move(token)); });
    }

    redlock::blocking::manager& manager_;
    redlock::reentrant_mutex mutex_;
};

} // namespace

int main(int argc, char** argv) {
    try {
        redlock::config config;
        config.masters.assign(argv + 1, argv + argc);
        // Use this only if no client can have held a lock before these masters started, as in this
        // example's test, which starts them. In production leave it on.
        config.quarantine = redlock::quarantine::off;

        redlock::blocking::manager manager(config);
        ledger books(manager);
        const redlock::reentrant_owner request;
        books.transfer(request, 100);
        books.book(request, 5);
        std::cout << "took the lock " << manager.async().get_metrics().acquired << " times\n";
        return 0;
    } catch (const std::exception& error) {
        std::cout << "failed: " << error.what() << '\n';
        return 2;
    }
}
