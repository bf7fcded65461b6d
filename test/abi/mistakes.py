"""What a compiler says about the mistakes that users make.

mistakes.py INCLUDE_DIRECTORY... -- COMPILER...

Each mistake must be found by the compiler, with a message that says what to do, or at least names
what does not fit. The mistakes that show only when a program runs are in
test/net/mutexes_test.cpp.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM = """
namespace asio = boost::asio;
using namespace std::chrono_literals;
asio::awaitable<void> mistake(
    redlock::lock_manager& manager, redlock::lock& held, redlock::acquire_options options,
    redlock::blocking::manager& threads, redlock::blocking::mutex& mutex, redlock::blocking::shared_mutex& shared) {
    %s
    co_return;
}
"""

TOKEN = "the last argument must be a completion token, such as asio::use_awaitable, or a handler"
WORK = "the work must take a redlock::lock& and return asio::awaitable<T>"
NODISCARD = "nodiscard|NODISCARD|unused result"
NO_ACQUIRE = "no matching.*async_acquire"
ASSIGNMENT = "operator=|overloaded '='"

# what it is, the code, what one of the messages must match
MISTAKES = [
    ("nothing is wrong", 'redlock::lock mine = co_await manager.async_acquire("r", options);', None),
    (
        "nothing is wrong with a list",
        """const std::vector<std::string> names{"a", "b"};
    auto [error, mine] = co_await manager.async_acquire(names, options, asio::as_tuple(asio::use_awaitable));""",
        None,
    ),
    (
        "nothing is wrong with a handler",
        'manager.async_acquire({"a", "b"}, [](redlock::error_code, redlock::lock) {});',
        None,
    ),
    ("a handler without the error", 'manager.async_acquire("r", options, [](redlock::lock) {});', TOKEN),
    (
        "a handler that takes the lock by reference",
        'manager.async_acquire("r", [](redlock::error_code, redlock::lock&) {});',
        TOKEN,
    ),
    ("a handler without the result", "held.async_release([](redlock::error_code) {});", TOKEN),
    ("a handler for two values of a run", "manager.async_run([](redlock::error_code, int) {});", TOKEN),
    ("a time in place of the options", 'co_await manager.async_acquire("r", 5s);', TOKEN),
    ("options after the token", 'manager.async_acquire("r", asio::use_awaitable, options);', NO_ACQUIRE),
    ("options before the name", 'co_await manager.async_acquire(options, "r");', NO_ACQUIRE),
    ("a number for a name", "co_await manager.async_acquire(42);", NO_ACQUIRE),
    ("no name", "co_await manager.async_acquire(nullptr);", NO_ACQUIRE),
    ("a slot without the size", 'co_await manager.async_acquire(redlock::slots("pool"), options);', "no matching"),
    ("a ttl without a unit", "options.ttl = 10'000;", ASSIGNMENT),
    ("a wait without a unit", "options.wait = 5;", ASSIGNMENT),
    ("a flag for a mode", "options.mode = true;", "lock_mode"),
    ("a forgotten co_await", 'manager.async_acquire("r", options);', NODISCARD),
    ("a discarded lock", 'threads.call([&](auto t) { return manager.async_acquire("r", std::move(t)); });', NODISCARD),
    ("a try whose result nobody reads", "mutex.try_lock();", NODISCARD),
    ("a timed try whose result nobody reads", "mutex.try_lock_for(5s);", NODISCARD),
    ("a reader's try whose result nobody reads", "shared.try_lock_shared();", NODISCARD),
    ("a blocking lock that nobody keeps", 'threads.acquire("r");', NODISCARD),
    (
        "a mutex for a shared mutex",
        "redlock::blocking::mutex& one = shared; one.lock();",
        "inaccessible base|private base",
    ),
    ("a copied lock", "redlock::lock other = held;", "deleted"),
    ("a manager without an executor", "redlock::config c; redlock::lock_manager m(c);", "lock_manager"),
    ("one string for all masters", 'redlock::config c; c.masters = "redis://a,redis://b";', ASSIGNMENT),
    (
        "work that is no coroutine",
        'co_await redlock::async_with_lock(manager, "r", options, [](redlock::lock&) {});',
        WORK,
    ),
    ("work that has begun", 'co_await redlock::async_with_lock(manager, "r", mistake);', WORK),
    (
        "a call that forgets the token",
        'threads.call([&](auto) { return manager.async_acquire("r", options); });',
        "return what the asynchronous function returns, with the token passed on to it",
    ),
    ("a guard of the asynchronous lock", "std::lock_guard guard(held);", "unlock"),
]


def main(arguments):
    end = arguments.index("--")
    include = [f"-I{directory}" for directory in arguments[:end]]
    compiler = [*arguments[end + 1 :], "-std=c++20", "-Wall", *include]
    faults = 0
    with tempfile.TemporaryDirectory() as place:
        header = pathlib.Path(place, "all.hpp")
        header.write_text(
            "#include <redlock/redlock.hpp>\n#include <boost/asio/as_tuple.hpp>\n"
            "#include <boost/asio/use_awaitable.hpp>\n"
        )
        # The other headers are read once. Both compilers find this file next to the header.
        subprocess.run(
            [*compiler, "-x", "c++-header", header, "-o", f"{header}.gch"], check=True
        )
        source = pathlib.Path(place, "mistake.cpp")
        for name, code, says in MISTAKES:
            source.write_text(PROGRAM % code)
            command = [*compiler, "-Werror", "-include", header, "-fsyntax-only", source]
            done = subprocess.run(command, capture_output=True, text=True)
            errors = [line for line in done.stderr.splitlines() if "error: " in line]
            found = not errors if says is None else re.search(says, "\n".join(errors))
            if not found:
                faults += 1
                print(f"{name}: expected '{says}'\n{done.stderr}")
            elif "-v" in sys.argv:
                print(f"{name}: {len(done.stderr.splitlines())} lines\n    {''.join(errors[:1])}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main([one for one in sys.argv[1:] if one != "-v"]))
