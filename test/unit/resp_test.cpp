#include "core/bytes/resp.hpp"
#include "support/test.hpp"

namespace resp_test { namespace {

using namespace redlock::core;

bool feed(reply_reader& reader, std::string_view bytes) {
    return reader.feed({bytes.data(), bytes.size()});
}

// A reply in words, so that two can be compared.
std::string in_words(const reply& one) {
    switch (one.type) {
    case reply_type::status:
        return "+" + std::string(one.text);
    case reply_type::error:
        return "-" + std::string(one.text);
    case reply_type::integer:
        return ":" + std::to_string(one.integer);
    case reply_type::string:
        return "$" + std::string(one.text);
    case reply_type::nil:
        return "nil";
    case reply_type::array:
        break;
    }
    std::string out = "*" + std::to_string(one.integer) + "[";
    for (const reply& element : one.elements) {
        out += element.type == reply_type::array ? "*" + std::to_string(element.integer) + " "
                                                 : in_words(element) + " ";
    }
    return out + "]";
}

// All replies in `bytes`, fed whole.
std::vector<std::string> all_of(reply_reader& reader, std::string_view bytes) {
    std::vector<std::string> found;
    feed(reader, bytes);
    while (const reply* const one = reader.next()) {
        found.push_back(in_words(*one));
    }
    return found;
}

std::string first_of(std::string_view bytes) {
    reply_reader reader;
    const auto found = all_of(reader, bytes);
    return found.empty() ? "nothing: " + reader.error() : found.front();
}

std::string bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

TEST_CASE("integers are read to their limits") {
    CHECK(first_of(":9223372036854775807\r\n") == ":9223372036854775807");
    CHECK(first_of(":-9223372036854775808\r\n") == ":-9223372036854775808");
    CHECK(first_of(":9223372036854775808\r\n").starts_with("nothing: malformed"));
    CHECK(first_of(":-9223372036854775809\r\n").starts_with("nothing: malformed"));
}

TEST_CASE("replies are the same wherever the stream is split") {
    const std::string stream = "+OK\r\n-ERR no\r\n:42\r\n$5\r\nhello\r\n$-1\r\n*-1\r\n*0\r\n"
                               "$0\r\n\r\n*3\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n+x\r\n"
                               "*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n";
    reply_reader whole;
    const std::vector<std::string> expected = all_of(whole, stream);
    REQUIRE(expected.size() == 10);
    for (std::size_t at = 0; at <= stream.size(); ++at) {
        reply_reader reader;
        std::vector<std::string> found = all_of(reader, stream.substr(0, at));
        const std::vector<std::string> rest = all_of(reader, stream.substr(at));
        found.insert(found.end(), rest.begin(), rest.end());
        REQUIRE(found == expected);
        REQUIRE(reader.error() == "");
    }
    reply_reader bytewise;
    std::vector<std::string> found;
    for (const char byte : stream) {
        for (const std::string& one : all_of(bytewise, {&byte, 1})) {
            found.push_back(one);
        }
    }
    CHECK(found == expected);
}

TEST_CASE("an array of very many elements is refused before it is complete") {
    reply_reader reader;
    feed(reader, "*100000000\r\n");
    CHECK(reader.next() == nullptr);
    std::string piece;
    for (int i = 0; i < 4'096; ++i) {
        piece += ":1\r\n";
    }
    std::size_t fed = 0;
    for (; fed < 32 * piece.size() && reader.error().empty(); fed += piece.size()) {
        feed(reader, piece);
        CHECK(reader.next() == nullptr);
    }
    CHECK(fed == reply_reader::reply_bytes_max);
    CHECK(reader.error().find("larger than") != std::string::npos);
}

TEST_CASE("a reply of the largest size is read, one byte more is refused") {
    const std::string largest(reply_reader::reply_bytes_max, 'i');
    CHECK(first_of(bulk(largest)) == "$" + largest);
    CHECK(first_of(bulk(largest + "i")).find("larger than") != std::string::npos);
}

TEST_CASE("a line that is larger than the largest reply is refused, also in one piece") {
    reply_reader reader;
    const auto found =
        all_of(reader, "-" + std::string(reply_reader::reply_bytes_max + 1, 'x') + "\r\n");
    CHECK(found.empty());
    CHECK(!reader.error().empty());
}

TEST_CASE("a number with a leading zero is invalid, fed whole or in pieces") {
    CHECK(first_of(":0\r\n") == ":0");
    for (const std::string bytes : {":007\r\n", ":00\r\n", ":-0\r\n", ":-07\r\n"}) {
        CAPTURE(bytes);
        CHECK(first_of(bytes).starts_with("nothing: "));
        reply_reader reader;
        const std::string_view whole = bytes; // the reader reads where they lie
        feed(reader, whole.substr(0, 2));
        CHECK(reader.next() == nullptr);
        feed(reader, whole.substr(2));
        CHECK(reader.next() == nullptr);
        CHECK(!reader.error().empty());
    }
}

TEST_CASE("an error stays until the reader is cleared, and then nothing is left of it") {
    reply_reader reader;
    feed(reader, "*2\r\n$3\r\nold\r\ngarbage\r\n");
    CHECK(reader.next() == nullptr);
    const std::string why = reader.error();
    CHECK(!why.empty());
    CHECK(!feed(reader, "+OK\r\n"));
    CHECK(reader.next() == nullptr);
    CHECK(reader.error() == why);
    reader.clear();
    CHECK(reader.error() == "");
    CHECK(all_of(reader, "+OK\r\n*1\r\n:5\r\n") == std::vector<std::string>{"+OK", "*1[:5 ]"});
}

TEST_CASE("what locks are answered with is read where it lies, without a copy") {
    const std::string longest = "-" + std::string(reply_reader::reply_bytes_max, 'x') + "\r\n";
    for (const std::string& bytes :
         {std::string("+OK\r\n"),
          std::string("+PONG\r\n"),
          std::string(":10\r\n"),
          std::string(":0\r\n"),
          std::string(":-3\r\n"),
          std::string("$-1\r\n"),
          std::string("$0\r\n\r\n"),
          std::string("$12\r\nquarantine 1\r\n"),
          bulk(std::string(reply_reader::reply_bytes_max, 'i')),
          std::string("-NOSCRIPT No matching script\r\n"),
          std::string("*3\r\n:1\r\n:0\r\n:1700000000000000\r\n"),
          longest}) {
        CAPTURE(bytes.substr(0, 40));
        const std::string two = bytes + bytes;
        reply_reader reader;
        feed(reader, two);
        for (int i = 0; i < 2; ++i) {
            const reply* const found = reader.next();
            REQUIRE(found != nullptr);
            // Such a reply is a part of the reader; others have a place of their own.
            CHECK(std::less_equal<const void*>()(&reader, found));
            CHECK(std::less<const void*>()(found, &reader + 1));
        }
    }
}

TEST_CASE("a line ends with both of its characters") {
    CHECK(first_of("+a\nb\r\n") != "+");
    CHECK(first_of("+a\n").starts_with("nothing"));
    CHECK(first_of(":1\n").starts_with("nothing"));
    for (const std::string no_end : {"\rx", "ab", "x\n"}) {
        CHECK(first_of(":1" + no_end + "\r\n") != first_of(":1\r\n"));
    }
}

TEST_CASE("a reply is taken by its bytes if it is whole, and the next one") {
    reply_reader reader;
    const std::string bytes = ":1\r\n:12\r\n:1";
    reader.feed(bytes);
    CHECK(!reader.take(""));
    CHECK(!reader.take(":12\r\n"));
    CHECK(reader.take(":1\r\n"));
    CHECK(!reader.take(":1\r\n"));
    CHECK(reader.take(":12\r\n"));
    CHECK(!reader.take(":1\r\n"));
    CHECK(reader.next() == nullptr);
    const std::string rest = "\r\n";
    reader.feed(rest);
    CHECK(!reader.take(":1\r\n")); // it came in pieces
    CHECK(reader.next()->integer == 1);
}

}} // namespace resp_test
