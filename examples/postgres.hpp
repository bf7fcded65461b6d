// What the examples need of PostgreSQL: statements with parameters, over one connection that
// blocks.

#pragma once

#include <libpq-fe.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace examples {

/// One connection. Throws `std::runtime_error` with the server's words. Not thread-safe.
class database {
public:
    using values = std::vector<std::string>;

    explicit database(const char* where) : connection_(PQconnectdb(where)) {
        if (PQstatus(connection_.get()) != CONNECTION_OK) {
            throw std::runtime_error(PQerrorMessage(connection_.get()));
        }
    }

    /// How many rows the statement has changed.
    int change(const char* statement, const values& parameters = {}) {
        const std::string rows = PQcmdTuples(ask(statement, parameters).get());
        return rows.empty() ? 0 : std::stoi(rows); // empty: a statement that changes no rows
    }

    /// The first row that a query finds, if any.
    std::optional<values> find(const char* query, const values& parameters = {}) {
        const result found = ask(query, parameters);
        if (PQntuples(found.get()) == 0) {
            return std::nullopt;
        }
        values row;
        for (int column = 0; column < PQnfields(found.get()); ++column) {
            row.emplace_back(PQgetvalue(found.get(), 0, column));
        }
        return row;
    }

private:
    struct deleter {
        void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
        void operator()(PGresult* found) const noexcept { PQclear(found); }
    };
    using result = std::unique_ptr<PGresult, deleter>;

    result ask(const char* statement, const values& parameters) {
        std::vector<const char*> texts;
        for (const std::string& one : parameters) {
            texts.push_back(one.c_str());
        }
        result answer(PQexecParams(
            connection_.get(),
            statement,
            static_cast<int>(texts.size()),
            nullptr,
            texts.data(),
            nullptr,
            nullptr,
            0));
        const ExecStatusType status = PQresultStatus(answer.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
            throw std::runtime_error(PQerrorMessage(connection_.get()));
        }
        return answer;
    }

    std::unique_ptr<PGconn, deleter> connection_;
};

} // namespace examples
