// The table of calls that wait for the engine.

#include "manager/pending.hpp"
#include "support/test.hpp"

#include <boost/asio/io_context.hpp>

namespace pending_test { namespace {

using namespace redlock;
using namespace redlock::detail;

using calls = pending<int, std::string>;

TEST_CASE("pending: a call is found by its cookie until it is completed, and then never again") {
    boost::asio::io_context io;
    const home mine(io.get_executor());
    calls table;
    std::vector<int> numbers;
    std::vector<std::string> texts;

    calls::call& first = table.add("a");
    calls::wait(
        first,
        completion<error_code, int>(
            [&](error_code error, int number) {
                CHECK(error == boost::asio::error::eof);
                numbers.push_back(number);
            },
            mine));
    calls::call& second = table.add("b");
    calls::wait(
        second,
        completion<error_code, std::string>(
            [&](error_code error, std::string text) {
                CHECK(!error);
                texts.push_back(std::move(text));
            },
            mine));
    const std::uint64_t one = first.cookie();
    const std::uint64_t other = second.cookie();
    CHECK(one != other);
    CHECK(table.find(one) == &first);
    CHECK(table.find(other) == &second);
    CHECK(*table.find(other)->resource == "b");

    first.observed = 7;
    diagnostics out;
    first.sink = {&out};
    table.end<int>(first)(mine, boost::asio::error::eof, 5);
    CHECK(table.find(one) == nullptr);
    CHECK(table.size() == 1);
    calls::call& third = table.add("c"); // in the place of the first
    CHECK(third.cookie() != one);
    CHECK(table.find(one) == nullptr);
    CHECK(third.observed == 0);
    CHECK(third.sink.out == nullptr);

    table.end<std::string>(second)(mine, {}, "text");
    CHECK(numbers.empty()); // never inside the call
    CHECK(texts.empty());
    io.poll();
    CHECK(numbers == std::vector{5});
    CHECK(texts == std::vector<std::string>{"text"});
}

}} // namespace pending_test
