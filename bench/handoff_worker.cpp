// The worker's loops.
#include "handoff_worker.hpp"

#include "handoff_log.hpp"
#include "redlock_client.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

// What the waiters of this process share.
struct shared_state {
    boost::asio::io_context& io;
    redlock::lock_manager& manager;
    const handoff_task& task;
    std::span<holding> log;
    redlock::acquire_options options;
    handoff_answer answer;
    bool stopping = false;

    void stop() {
        if (!std::exchange(stopping, true)) {
            // Waiters must not be served any more, or the end would be measured as well.
            manager.async_close([this](redlock::error_code) { io.stop(); });
        }
    }

    void note_failure(std::string text) {
        if (!stopping && answer.failures++ == 0) {
            answer.first_failure = std::move(text);
        }
    }
};

class waiter {
public:
    waiter(shared_state& shared, std::uint32_t number) : shared_(shared), timer_(shared.io) {
        now_.waiter = number;
        now_.process = shared.task.process;
    }

    void ask() {
        if (shared_.stopping) {
            return;
        }
        now_.asked = monotonic_now();
        shared_.manager.async_acquire(
            shared_.task.resource,
            shared_.options,
            [this](redlock::error_code error, redlock::lock acquired) {
                on_acquired(error, std::move(acquired));
            });
    }

private:
    void on_acquired(redlock::error_code error, redlock::lock acquired) {
        now_.acquired = monotonic_now();
        if (error || !acquired.held()) {
            shared_.note_failure(
                "acquire: " + (error ? error.message() : "a lock that is not held"));
            if (!error) {
                ask();
            }
            return;
        }
        if (shared_.stopping) {
            return;
        }
        if (shared_.answer.holdings == shared_.log.size()) {
            shared_.stop();
            return;
        }
        lock_ = std::move(acquired);
        auto& entry = shared_.log[shared_.answer.holdings++];
        now_.releasing = monotonic_now();
        entry = now_;
        if (shared_.task.hold.count() == 0) {
            release();
            return;
        }
        timer_.expires_after(shared_.task.hold);
        timer_.async_wait([this, &entry](boost::system::error_code) {
            entry.releasing = monotonic_now();
            release();
        });
    }

    void release() {
        lock_.async_release([this](redlock::error_code failed, redlock::release_result found) {
            if (failed || found != redlock::release_result::released) {
                shared_.note_failure(fmt::format(
                    "release: {}",
                    failed ? failed.message() : std::string(redlock::to_string(found))));
            }
            ask();
        });
    }

    shared_state& shared_;
    boost::asio::steady_timer timer_;
    holding now_;
    redlock::lock lock_;
};

void say(const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
}

std::string hear() {
    std::string line;
    if (!std::getline(std::cin, line)) {
        throw std::runtime_error("the program that started this worker has ended");
    }
    return line;
}

handoff_answer work(const handoff_task& task) {
    const handoff_log log(task.log);
    boost::asio::io_context io(1);
    redlock::lock_manager manager(io.get_executor(), make_config(task.masters, task.work));
    manager.async_run([](redlock::error_code) {});
    wait_until_admitted(io, manager, task.masters.size());
    shared_state shared{io, manager, task, log.holdings(), {}, {}};
    shared.options.ttl = task.work.ttl;
    shared.options.wait = redlock::wait_for::forever();
    shared.options.fencing = task.work.who == side::fenced;
    std::vector<std::unique_ptr<waiter>> waiters;
    for (std::uint32_t i = 0; i < task.waiters; ++i) {
        waiters.push_back(std::make_unique<waiter>(shared, task.first_waiter + i));
    }
    say("ready");
    hear();
    boost::asio::steady_timer timer(io, task.work.duration);
    timer.async_wait([&](boost::system::error_code) { shared.stop(); });
    for (const auto& one : waiters) {
        one->ask();
    }
    io.restart();
    io.run();
    shared.answer.local = manager.get_metrics().local_handoffs;
    return shared.answer;
}

} // namespace

void to_json(nlohmann::json& out, const handoff_task& task) {
    out = {
        {"side", task.work.who},
        {"resource", task.resource},
        {"ttl_ms", task.work.ttl.count()},
        {"master_timeout_ms", task.work.master_timeout.count()},
        {"duration_ms", task.work.duration.count()},
        {"hold_ms", task.hold.count()},
        {"process", task.process},
        {"first_waiter", task.first_waiter},
        {"waiters", task.waiters},
        {"log", task.log},
        {"masters", nlohmann::json::array()}};
    for (const auto& master : task.masters) {
        out["masters"].push_back(
            {{"host", master.host},
             {"port", master.port},
             {"username", master.username},
             {"password", master.password},
             {"name", master.name}});
    }
}

void from_json(const nlohmann::json& in, handoff_task& task) {
    in.at("side").get_to(task.work.who);
    in.at("resource").get_to(task.resource);
    const auto milliseconds = [&in](const char* name) {
        return std::chrono::milliseconds(in.at(name).get<std::int64_t>());
    };
    task.work.ttl = milliseconds("ttl_ms");
    task.work.master_timeout = milliseconds("master_timeout_ms");
    task.work.duration = milliseconds("duration_ms");
    task.hold = milliseconds("hold_ms");
    in.at("process").get_to(task.process);
    in.at("first_waiter").get_to(task.first_waiter);
    in.at("waiters").get_to(task.waiters);
    in.at("log").get_to(task.log);
    for (const auto& master : in.at("masters")) {
        task.masters.push_back(
            {master.at("host").get<std::string>(),
             master.at("port").get<std::uint16_t>(),
             master.at("username").get<std::string>(),
             master.at("password").get<std::string>(),
             master.at("name").get<std::string>()});
    }
}

void to_json(nlohmann::json& out, const handoff_answer& answer) {
    out = {
        {"holdings", answer.holdings},
        {"local", answer.local},
        {"failures", answer.failures},
        {"first_failure", answer.first_failure}};
}

void from_json(const nlohmann::json& in, handoff_answer& answer) {
    in.at("holdings").get_to(answer.holdings);
    in.at("local").get_to(answer.local);
    in.at("failures").get_to(answer.failures);
    in.at("first_failure").get_to(answer.first_failure);
}

int run_handoff_worker() {
    try {
        const auto task = nlohmann::json::parse(hear()).get<handoff_task>();
        say(nlohmann::json(work(task)).dump());
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "quorum_bench, a worker: {}\n", error.what());
        return 1;
    }
}

} // namespace bench
