// A fencing token in PostgreSQL: a holder that was paused past the end of its lease writes too
// late, and the UPDATE itself refuses it. Then the same table by a version check, which needs no
// lock at all.
//
//     fenced_postgres CONNECTION MASTER...
//     fenced_postgres "host=/run/postgresql dbname=test" redis://127.0.0.1:7101 ...
//
// Works in a temporary table, which no other session sees.

#include "postgres.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

using examples::database;

constexpr const char* report = "1"; // the row that the lock is about

void make_table(database& data) {
    data.change("CREATE TEMPORARY TABLE reports ("
                " id bigint PRIMARY KEY,"
                " body text NOT NULL,"
                " fencing_token bigint NOT NULL DEFAULT 0,"
                " version bigint NOT NULL DEFAULT 0)");
    data.change("INSERT INTO reports (id, body) VALUES ($1, 'empty')", {report});
}

struct content {
    std::string body;
    std::string version;
};

// Both by one statement: of two, the second might see what a write in between has made.
content read(database& data) {
    const auto row = data.find("SELECT body, version FROM reports WHERE id = $1", {report});
    if (!row) {
        throw std::runtime_error("there is no such report");
    }
    return {row->at(0), row->at(1)};
}

/// Writes only if no owner with a larger token has written before; otherwise throws
/// stale_token_error.
void save(database& data, std::uint64_t token, const std::string& text) {
    const int rows = data.change(
        "UPDATE reports SET body = $3, fencing_token = $1"
        " WHERE id = $2 AND fencing_token <= $1",
        {std::to_string(token), report, text});
    if (rows == 1) {
        return;
    }
    // No row: it has seen a larger token, or is not there at all.
    const auto highest = data.find("SELECT fencing_token FROM reports WHERE id = $1", {report});
    if (!highest) {
        throw std::runtime_error("there is no such report");
    }
    throw redlock::stale_token_error(token, std::stoull(highest->at(0)));
}

// In life the two managers, and their connections to the database, are in two processes.
void by_token(redlock::lock_manager& a, redlock::lock_manager& b, database& data) {
    redlock::acquire_options options;
    options.fencing = true;
    options.ttl = 500ms;
    options.renew = false; // as if the process stood still, and the renewal with it
    redlock::lock paused = a.async_acquire("reports/1", options, asio::use_future).get();
    const std::uint64_t old_token = paused.fencing_token();
    save(data, old_token, "begun by A");
    std::cout << "A has written with token " << old_token << ", and is paused" << std::endl;
    paused.async_wait_lost(asio::use_future).get();

    options.renew = true;
    redlock::lock held = b.async_acquire("reports/1", options, asio::use_future).get();
    const std::uint64_t new_token = held.fencing_token();
    save(data, new_token, "written by B");
    std::cout << "B has written with token " << new_token << std::endl;

    // A goes on where it stood, and has not looked at held().
    try {
        save(data, old_token, "finished by A");
        std::cout << "A has written, too late" << std::endl;
    } catch (const redlock::stale_token_error& refused) {
        std::cout << "A was refused: " << refused.what() << std::endl;
    }
    save(data, new_token, "finished by B"); // the holder writes as often as it likes
    std::cout << "the report is " << read(data).body << std::endl;
    held.async_release(asio::use_future).get();
}

/// Writes only over the state that the caller has read.
bool save_over(database& data, const content& seen, const std::string& text) {
    return data.change(
               "UPDATE reports SET body = $3, version = version + 1"
               " WHERE id = $1 AND version = $2",
               {report, seen.version, text})
           == 1;
}

// No lock is held here. Both read, both work, and the second to write finds that its work is void.
void by_version(database& data) {
    const content seen_by_c = read(data);
    const content seen_by_d = read(data);
    const bool d_wrote = save_over(data, seen_by_d, "by D");
    const bool c_wrote = save_over(data, seen_by_c, "by C");
    std::cout << "D's write over version " << seen_by_d.version
              << (d_wrote ? " counts" : " is void") << ", C's over " << seen_by_c.version
              << (c_wrote ? " counts" : " is void") << std::endl;
    // It works again, from what is there now, until it counts.
    for (bool done = c_wrote; !done;) {
        const content now = read(data);
        done = save_over(data, now, now.body + " and C");
    }
    std::cout << "the report is " << read(data).body << std::endl;
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 3) {
            throw std::invalid_argument("usage: fenced_postgres CONNECTION MASTER...");
        }
        database data(argv[1]);
        make_table(data);
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
            by_token(a, b, data);
            by_version(data);
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
