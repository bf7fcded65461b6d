// A fencing token at work: a holder that was paused past the end of its lease writes too late, and
// the resource itself, here a key in Redis, refuses it.
//
//     fenced_redis DATA MASTER...
//     fenced_redis redis://127.0.0.1:7200 redis://127.0.0.1:7101 redis://127.0.0.1:7102 ...
//
// DATA is the server with the guarded key; it need not be one of the masters, and is spoken to with
// hiredis. Any other client would do: the library only makes the words of the command.

#include <redlock/redlock.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <hiredis/hiredis.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

class data_server {
public:
    explicit data_server(const redlock::endpoint& where)
        : context_(redisConnect(where.host.c_str(), where.port)) {
        if (!context_ || context_->err != 0) {
            throw std::runtime_error("cannot connect to " + to_string(where));
        }
    }

    /// Writes only if no owner with a larger token has written before; otherwise throws
    /// stale_token_error.
    void save(const redlock::fenced_set& key, std::uint64_t token, std::string_view value) {
        reply answer = ask(key.evalsha(token, value));
        if (answer->type == REDIS_REPLY_ERROR
            && std::string_view(answer->str).starts_with("NOSCRIPT")) {
            answer = ask(key.eval(token, value)); // the server knows the script from now on
        }
        if (answer->type == REDIS_REPLY_ERROR) {
            throw std::runtime_error(answer->str);
        }
        redlock::fenced_reply verdict;
        if (answer->type == REDIS_REPLY_ARRAY && answer->elements == 2) {
            verdict.accepted = answer->element[0]->integer;
            verdict.highest = answer->element[1]->integer;
        }
        verdict.require(token); // another type is refused here as well
    }

    std::string load(const std::string& key) {
        const reply answer = ask({"GET", key});
        return answer->type == REDIS_REPLY_STRING ? std::string(answer->str, answer->len) : "";
    }

private:
    struct deleter {
        void operator()(redisContext* context) const noexcept { redisFree(context); }
        void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
    };
    using reply = std::unique_ptr<redisReply, deleter>;

    reply ask(const std::vector<std::string>& words) {
        std::vector<const char*> texts;
        std::vector<std::size_t> sizes;
        for (const std::string& word : words) {
            texts.push_back(word.data());
            sizes.push_back(word.size());
        }
        reply answer(static_cast<redisReply*>(redisCommandArgv(
            context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data())));
        if (!answer) {
            throw std::runtime_error(context_->errstr);
        }
        return answer;
    }

    std::unique_ptr<redisContext, deleter> context_;
};

// In life the two managers are in two processes.
void two_owners(redlock::lock_manager& a, redlock::lock_manager& b, data_server& data) {
    const std::string key = "reports/daily";
    const redlock::fenced_set report(key);

    redlock::acquire_options options;
    options.fencing = true;
    options.ttl = 500ms;
    options.renew = false; // as if the process stood still, and the renewal with it
    redlock::lock paused = a.async_acquire("reports/daily", options, asio::use_future).get();
    const std::uint64_t old_token = paused.fencing_token();
    data.save(report, old_token, "begun by A");
    std::cout << "A has written with token " << old_token << ", and is paused" << std::endl;
    paused.async_wait_lost(asio::use_future).get();

    options.renew = true;
    redlock::lock held = b.async_acquire("reports/daily", options, asio::use_future).get();
    const std::uint64_t new_token = held.fencing_token();
    data.save(report, new_token, "written by B");
    std::cout << "B has written with token " << new_token << std::endl;

    // A goes on where it stood, and has not looked at held().
    try {
        data.save(report, old_token, "finished by A");
        std::cout << "A has written, too late" << std::endl;
    } catch (const redlock::stale_token_error& refused) {
        std::cout << "A was refused: " << refused.what() << std::endl;
    }
    data.save(report, new_token, "finished by B"); // the holder writes as often as it likes
    std::cout << "the report is " << data.load(key) << std::endl;
    held.async_release(asio::use_future).get();
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 3) {
            throw std::invalid_argument("usage: fenced_redis DATA MASTER...");
        }
        data_server data{redlock::endpoint(argv[1])};
        redlock::config config;
        config.masters.assign(argv + 2, argv + argc);
        config.max_ttl = 5s;
        // Use this only if no client can have held a lock before these masters started, as in this
        // example's test, which starts them. In production leave it on.
        config.quarantine = false;

        asio::io_context io;
        redlock::lock_manager a(io.get_executor(), config);
        redlock::lock_manager b(io.get_executor(), config);
        a.async_run(asio::detached);
        b.async_run(asio::detached);
        const std::jthread library([&io] { io.run(); });
        int status = 0;
        try {
            two_owners(a, b, data);
        } catch (const std::exception& error) {
            std::cout << "failed: " << error.what() << '\n';
            status = 1;
        }
        a.async_close(asio::use_future).get(); // whatever happened, or run() never ends
        b.async_close(asio::use_future).get();
        return status;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
