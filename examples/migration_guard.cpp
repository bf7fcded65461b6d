// Several instances of a service start at once, and each wants its database's schema to be new:
// exactly one migrates it, and the others wait for that and find it done. If the one that migrates
// dies, another takes over; if it was only paused, it cannot write any more.
//
//     migration_guard CONNECTION MASTER...
//     migration_guard "host=/run/postgresql dbname=test" redis://127.0.0.1:7101 ...
//
// Makes the table of document_service.cpp.

#include "postgres.hpp"

#include <redlock/blocking.hpp>
#include <redlock/fenced.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using examples::database;
using namespace std::chrono_literals;

// The migration to version N is number N - 1. What was once released is never changed, only added
// to.
constexpr std::array migrations = {
    "CREATE TABLE documents (name text PRIMARY KEY, body text NOT NULL)",
    "ALTER TABLE documents ADD COLUMN fencing_token bigint NOT NULL DEFAULT 0",
    "ALTER TABLE documents ADD COLUMN changed timestamptz NOT NULL DEFAULT now()",
};

// One row, which all migrations go through: the version, and the last token that was seen.
// Instances that come here at once do nothing twice, but may meet in PostgreSQL's own catalogue,
// hence under the lock, too.
void make_record(database& data) {
    data.change("CREATE TABLE IF NOT EXISTS schema_record ("
                " id int PRIMARY KEY DEFAULT 1 CHECK (id = 1),"
                " version int NOT NULL DEFAULT 0,"
                " fencing_token bigint NOT NULL DEFAULT 0)");
    data.change("INSERT INTO schema_record DEFAULT VALUES ON CONFLICT DO NOTHING");
}

// A transaction that is rolled back unless it was committed.
class transaction {
public:
    explicit transaction(database& data) : data_(data) { data_.change("BEGIN"); }
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;
    ~transaction() {
        try {
            if (open_) {
                data_.change("ROLLBACK");
            }
        } catch (const std::exception&) { // the connection is gone, and so is the transaction
        }
    }
    void commit() {
        data_.change("COMMIT");
        open_ = false;
    }

private:
    database& data_;
    bool open_ = true;
};

/// Returns the version that was there before. All or nothing, and only with the largest token so
/// far: PostgreSQL has no other way to know that this process still has the lock.
std::size_t migrate(database& data, std::uint64_t token) {
    make_record(data);
    transaction all(data);
    // First: it keeps every other transaction of this kind out until the end, also that of an owner
    // before us who has not noticed yet.
    if (data.change(
            "UPDATE schema_record SET fencing_token = $1 WHERE fencing_token <= $1",
            {std::to_string(token)})
        == 0) {
        throw redlock::stale_token_error(token);
    }
    const std::size_t before = std::stoul(data.find("SELECT version FROM schema_record")->front());
    if (before > migrations.size()) {
        throw std::runtime_error("the schema is newer than this program");
    }
    for (std::size_t version = before; version < migrations.size(); ++version) {
        std::cout << "migrates to version " << version + 1 << std::endl;
        data.change(migrations.at(version));
    }
    data.change("UPDATE schema_record SET version = $1", {std::to_string(migrations.size())});
    all.commit();
    return before;
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 3) {
            throw std::invalid_argument("usage: migration_guard CONNECTION MASTER...");
        }
        database data(argv[1]);
        // Whoever stands still in the transaction keeps the row from the others. PostgreSQL ends
        // that after about a lease.
        data.change("SET idle_in_transaction_session_timeout = '2s'");
        data.change("SET client_min_messages = warning");

        redlock::config config;
        config.masters.assign(argv + 2, argv + argc);
        config.max_ttl = 2s;
        redlock::blocking::manager manager(config); // renews on a thread of its own
        redlock::acquire_options options;
        options.ttl = 2s;
        options.wait = redlock::wait_for::forever(); // a migration may take its time
        options.fencing = true;
        redlock::blocking::mutex schema(manager, "migrations/documents", options);

        const std::lock_guard guard(schema);
        const std::uint64_t token = schema.fencing_token().value();
        std::cout << "has the lock, with token " << token << std::endl;
        const std::size_t before = migrate(data, token);
        if (before == migrations.size()) {
            std::cout << "found version " << before << std::endl;
        } else {
            std::cout << "migrated from version " << before << " to " << migrations.size()
                      << std::endl;
        }
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "migration_guard: " << error.what() << '\n';
        return 2;
    }
}
