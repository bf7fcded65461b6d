// What every asynchronous operation promises of its handler: operation x property. A handler is
// called once, never from inside the function that began the operation, on its executor, with
// memory of its allocator. So with every completion token, after a cancellation, after a move of
// the manager, its end, and the end of the context.
#include "quorum.hpp"
#include "support/error_of.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>
#include <future>

namespace redlock::test::operations { namespace {

const error_code aborted = asio::error::operation_aborted;

struct memory {
    std::atomic<std::ptrdiff_t> allocated{0};
    std::atomic<std::ptrdiff_t> alive{0};
};

template <typename Value>
struct counting_allocator {
    using value_type = Value;
    std::shared_ptr<memory> count;

    explicit counting_allocator(std::shared_ptr<memory> numbers) : count(std::move(numbers)) {}
    template <typename Other>
    counting_allocator(const counting_allocator<Other>& other) : count(other.count) {}
    Value* allocate(std::size_t size) {
        ++count->allocated;
        ++count->alive;
        return std::allocator<Value>().allocate(size);
    }
    void deallocate(Value* memory, std::size_t size) {
        --count->alive;
        std::allocator<Value>().deallocate(memory, size);
    }
    template <typename Other>
    bool operator==(const counting_allocator<Other>& other) const {
        return count == other.count;
    }
};

// What became of a handler.
struct record {
    std::atomic<int> calls{0};
    std::atomic<int> wrong{0}; // inside the function, or on another executor
    std::atomic<bool> inside{false};
    error_code error;
    asio::cancellation_signal cancel;
    std::shared_ptr<memory> used = std::make_shared<memory>();
    std::function<bool()> at_home = [] { return true; };
};

// A handler that can only be moved, with everything that can be associated with one.
class tracked {
public:
    using executor_type = asio::any_io_executor;
    using allocator_type = counting_allocator<char>;
    using cancellation_slot_type = asio::cancellation_slot;

    tracked(std::shared_ptr<record> of, executor_type executor)
        : record_(std::move(of)),
          executor_(std::move(executor)) {}
    executor_type get_executor() const noexcept { return executor_; }
    allocator_type get_allocator() const noexcept { return allocator_type(record_->used); }
    cancellation_slot_type get_cancellation_slot() const noexcept { return record_->cancel.slot(); }

    template <typename First, typename... Rest>
    void operator()(First first, const Rest&...) {
        if constexpr (std::is_same_v<First, error_code>) {
            record_->error = first;
        } else {
            record_->error = error_of(first);
        }
        record_->wrong += record_->inside || !record_->at_home() ? 1 : 0;
        ++record_->calls;
    }

private:
    std::shared_ptr<record> record_;
    executor_type executor_;
    std::unique_ptr<int> movable_only_;
};

struct site {
    site() {
        released = q.acquired_everywhere("released");
        q.release(released);
        q.run_until([this] { return q.keys() == 0; });
        held = q.acquired_everywhere("held");
    }
    // What holds a lock lets it go, which ends what waits for that.
    void let_go() { held = {}; }

    started_quorum q;
    lock held;
    lock released;
    std::optional<election> leaders{std::in_place, *q.manager, "leaders"};
    diagnostics why;
};

struct operation {
    const char* name;
    std::function<void(site&, tracked)> begin;
    std::function<std::function<void(tracked)>(site&)> defer;
    std::function<asio::awaitable<void>(site&)> await;
    std::function<std::function<bool()>(site&)> future; // whether it is ready
    std::function<void(site&)> detach;
};

template <typename Begin>
operation row(const char* name, Begin begin) {
    return {
        name,
        [begin](site& s, tracked handler) { begin(s, std::move(handler)); },
        [begin](site& s) -> std::function<void(tracked)> {
            auto later =
                std::make_shared<decltype(begin(s, asio::deferred))>(begin(s, asio::deferred));
            return [later](tracked handler) { std::move (*later)(std::move(handler)); };
        },
        [begin](site& s) -> asio::awaitable<void> {
            auto begun = begin(s, asio::use_awaitable);
            static_cast<void>(co_await std::move(begun));
        },
        [begin](site& s) -> std::function<bool()> {
            auto future =
                std::make_shared<decltype(begin(s, asio::use_future))>(begin(s, asio::use_future));
            return [future] { return future->wait_for(0s) == std::future_status::ready; };
        },
        [begin](site& s) { begin(s, asio::detached); }};
}

const locked_work no_work = [](lock&) -> asio::awaitable<void> { co_return; };

// One type for all rows of a function: each type is a second of the compiler's time.
auto acquiring(target wanted, acquire_options how) {
    return [=](site& s, auto t) { return s.q.manager->async_acquire(wanted, how, std::move(t)); };
}

auto querying(const char* name) {
    return [=](site& s, auto t) { return s.q.manager->async_query(name, std::move(t)); };
}

auto extending(lock site::*which, std::chrono::milliseconds ttl) {
    return [=](site& s, auto t) { return (s.*which).async_extend(ttl, std::move(t)); };
}

auto releasing(lock site::*which) {
    return [=](site& s, auto t) { return (s.*which).async_release(std::move(t)); };
}

const std::vector<operation>& operations() {
    static const std::string secret(40, 'a');
    static const std::vector<operation> all{
        row("run", [](site& s, auto t) { return s.q.manager->async_run(std::move(t)); }),
        row("ready", [](site& s, auto t) { return s.q.manager->async_ready(std::move(t)); }),
        row("close", [](site& s, auto t) { return s.q.manager->async_close(std::move(t)); }),
        row("acquire", acquiring("r", patiently())),
        row("acquire, refused", acquiring("", once())),
        row("acquire several", acquiring({"r", "s"}, once())),
        row("acquire a slot", acquiring(redlock::slots("p", 3), once())),
        row("acquire, with diagnostics",
            [](site& s, auto t) {
                return s.q.manager->async_acquire(
                    "r", patiently(), with_diagnostics(s.why, std::move(t)));
            }),
        row("acquire with a secret",
            [](site& s, auto t) {
                return s.q.manager->async_acquire_as("r", secret, std::move(t));
            }),
        row("attach",
            [](site& s, auto t) { return s.q.manager->async_attach("r", secret, std::move(t)); }),
        row("query", querying("r")),
        row("query, refused", querying("")),
        row("add a member",
            [](site& s, auto t) {
                return s.q.manager->async_add_member(
                    to_string(s.q.settings.masters[0]), std::move(t));
            }),
        row("extend", extending(&site::held, 25s)),
        row("extend, refused", extending(&site::held, 0ms)),
        row("extend what is released", extending(&site::released, 25s)),
        row("wait for the loss",
            [](site& s, auto t) { return s.held.async_wait_lost(std::move(t)); }),
        row("release", releasing(&site::held)),
        row("release again", releasing(&site::released)),
        row("with_lock",
            [](site& s, auto t) {
                return async_with_lock(*s.q.manager, "r", once(), no_work, std::move(t));
            }),
        row("campaign", [](site& s, auto t) { return s.leaders->async_campaign(std::move(t)); }),
        row("lead", [](site& s, auto t) { return s.leaders->async_lead(no_work, std::move(t)); }),
        row("observe", [](site& s, auto t) { return s.leaders->async_observe(std::move(t)); }),
        row("wait for a change",
            [](site& s, auto t) { return s.leaders->async_wait_change("somebody", std::move(t)); }),
    };
    return all;
}

void for_each_operation(const std::function<void(const operation&, site&)>& check) {
    for (const operation& one : operations()) {
        INFO(one.name);
        site s;
        check(one, s);
    }
}

// Begins it, from a handler of the manager's own executor.
void begin_inside(const operation& one, site& s, const std::shared_ptr<record>& of, tracked by) {
    asio::post(s.q.io, [&one, &s, of, handler = std::make_shared<tracked>(std::move(by))] {
        of->inside = true;
        one.begin(s, std::move(*handler));
        of->inside = false;
    });
    s.q.poll();
    s.let_go();
}

TEST_CASE("each operation calls its handler once, later, on its strand, with its allocator") {
    for_each_operation([](const operation& one, site& s) {
        const auto seen = std::make_shared<record>();
        const auto strand = asio::make_strand(s.q.io);
        seen->at_home = [&] { return strand.running_in_this_thread(); };
        begin_inside(one, s, seen, tracked(seen, strand));
        s.q.run_until([&] { return seen->calls > 0; });
        s.q.poll();
        CHECK(seen->calls == 1);
        CHECK(seen->wrong == 0);
        CHECK(seen->used->allocated > 0);
        CHECK(seen->used->alive == 0);
    });
}

TEST_CASE("each operation calls its handler on another context, which has work until then") {
    for_each_operation([](const operation& one, site& s) {
        asio::io_context other;
        const auto seen = std::make_shared<record>();
        seen->at_home = [&] { return other.get_executor().running_in_this_thread(); };
        one.begin(s, tracked(seen, other.get_executor()));
        other.poll();
        CHECK((!other.stopped() || seen->calls == 1)); // it would be, without work
        s.let_go();
        while (seen->calls == 0) {
            s.q.poll();
            other.run_one_for(1ms);
        }
        s.q.poll();
        other.poll();
        CHECK(other.stopped());
        CHECK(seen->calls == 1);
        CHECK(seen->wrong == 0);
    });
}

TEST_CASE("each operation takes every completion token") {
    for_each_operation([](const operation& one, site& s) {
        const std::size_t before = s.q.count("*");
        auto later = one.defer(s);
        const auto seen = std::make_shared<record>();
        s.q.poll();
        CHECK(s.q.count("*") == before);
        later(tracked(seen, s.q.io.get_executor()));
        s.let_go();
        s.q.run_until([&] { return seen->calls == 1; });
    });
    for_each_operation([](const operation& one, site& s) {
        const auto ready = one.future(s);
        s.let_go();
        s.q.run_until(ready);
    });
    for_each_operation([](const operation& one, site& s) {
        bool done = false;
        asio::co_spawn(s.q.io, one.await(s), [&](const std::exception_ptr&) { done = true; });
        s.q.poll();
        s.let_go();
        s.q.run_until([&] { return done; });
    });
    for_each_operation([](const operation& one, site& s) {
        one.detach(s);
        s.let_go();
        s.q.wait(s.q.begin_close()); // whatever it was, it is over
        CHECK(s.q.manager->get_metrics().waiting == 0);
    });
}

TEST_CASE("each operation of a closed manager ends, and not inside the function") {
    for_each_operation([](const operation& one, site& s) {
        s.q.begin_close();
        s.q.release(s.held);
        s.q.wait(*s.q.running);
        const auto seen = std::make_shared<record>();
        begin_inside(one, s, seen, tracked(seen, s.q.io.get_executor()));
        s.q.run_until([&] { return seen->calls > 0; });
        s.q.poll();
        CHECK(seen->calls == 1);
        CHECK(seen->wrong == 0);
    });
}

TEST_CASE("each operation ends once when it is cancelled, and leaves no key") {
    for (const bool at_once : {true, false}) { // else when its commands have no reply yet
        for_each_operation([at_once](const operation& one, site& s) {
            INFO((at_once ? "at once" : "without a reply"));
            s.q.when("*", fake_action::hang());
            const auto seen = std::make_shared<record>();
            one.begin(s, tracked(seen, s.q.io.get_executor()));
            if (!at_once) {
                s.q.poll();
            }
            seen->cancel.emit(asio::cancellation_type::terminal);
            seen->cancel.emit(asio::cancellation_type::terminal);
            s.q.run_until([&] { return seen->calls > 0; });
            s.q.each(&fake_master::clear_rules);
            s.q.each(&fake_master::release_hung);
            s.let_go();
            s.q.run_until([&] { return s.q.keys() == 0; });
            seen->cancel.emit(asio::cancellation_type::terminal);
            CHECK(seen->calls == 1);
            CHECK(seen->used->alive == 0);
            CHECK((!s.q.running->done() || one.name == std::string("close")));
        });
    }
}

TEST_CASE("in a coroutine that was cancelled before no operation begins") {
    for_each_operation([](const operation& one, site& s) {
        const auto requests = [&] {
            return s.q.count("SET") + s.q.count("EVAL") + s.q.count("EVALSHA") + s.q.count("GET");
        };
        const std::size_t before = requests();
        asio::cancellation_signal cancel;
        error_code ended;
        bool done = false;
        const auto work = [&]() -> asio::awaitable<void> {
            cancel.emit(asio::cancellation_type::terminal);
            try {
                co_await one.await(s);
            } catch (const boost::system::system_error& error) {
                ended = error.code();
            }
            // Asio's own step after the coroutine would throw as well.
            co_await asio::this_coro::reset_cancellation_state();
            done = true;
        };
        asio::co_spawn(
            s.q.io, work, asio::bind_cancellation_slot(cancel.slot(), [](std::exception_ptr) {}));
        s.q.run_until([&] { return done; });
        s.q.poll();
        CHECK(ended == aborted);
        CHECK(requests() == before);
        CHECK(s.held.held());
        CHECK_FALSE(s.q.running->done());
    });
}

TEST_CASE("each operation that was made of a manager works after the manager was moved") {
    for_each_operation([](const operation& one, site& s) {
        auto later = one.defer(s);
        lock_manager moved = std::move(*s.q.manager);
        s.q.manager.reset();
        const auto seen = std::make_shared<record>();
        later(tracked(seen, s.q.io.get_executor()));
        s.let_go();
        s.q.run_until([&] { return seen->calls == 1; });
        CHECK(seen->error != errc::closed);
        s.q.manager.emplace(std::move(moved));
    });
}

TEST_CASE("a context that is destroyed destroys the handler of each operation") {
    for (const bool lock_first : {true, false}) {
        for_each_operation([&](const operation& one, site& s) {
            s.q.when("*", fake_action::hang());
            const auto seen = std::make_shared<record>();
            one.begin(s, tracked(seen, s.q.io.get_executor()));
            s.q.poll();
            if (lock_first) {
                s.let_go();
            }
            s.leaders.reset();
            s.q.manager.reset();
            s.q.context.reset();
            CHECK(seen.use_count() == 1);
            CHECK(seen->used->alive == 0);
            CHECK_FALSE(s.held.held()); // nobody renews or watches it any more
        });
    }
}

}} // namespace redlock::test::operations
