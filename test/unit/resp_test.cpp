#include "core/bytes/append_command.hpp"
#include "core/bytes/resp.hpp"
#include "support/test.hpp"

#include <random>

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

TEST_CASE("a command is an array of counted strings") {
    std::string out;
    append_command(out, {"PING"});
    CHECK(out == "*1\r\n$4\r\nPING\r\n");
    out.clear();
    append_command(out, {"SET", "k", "v", "NX", "PX", "10"});
    CHECK(out == "*6\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$2\r\nNX\r\n$2\r\nPX\r\n$2\r\n10\r\n");
}

TEST_CASE("a command may hold any bytes, and is appended") {
    std::string out = "before";
    const std::string_view odd("\0\r\n$*\xff", 6);
    append_command(out, {"GET", odd, ""});
    CHECK(out == "before*3\r\n$3\r\nGET\r\n$6\r\n" + std::string(odd) + "\r\n$0\r\n\r\n");
}

TEST_CASE("every type of reply is read") {
    CHECK(first_of("+OK\r\n") == "+OK");
    CHECK(first_of("-ERR bad\r\n") == "-ERR bad");
    CHECK(first_of(":0\r\n") == ":0");
    CHECK(first_of(":-1\r\n") == ":-1");
    CHECK(first_of("$5\r\nhello\r\n") == "$hello");
    CHECK(first_of("$0\r\n\r\n") == "$");
    CHECK(first_of("$-1\r\n") == "nil");
    CHECK(first_of("*-1\r\n") == "nil");
    CHECK(first_of("*0\r\n") == "*0[]");
    CHECK(first_of("*2\r\n$1\r\na\r\n:7\r\n") == "*2[$a :7 ]");
    CHECK(first_of("*3\r\n:1\r\n*2\r\n:2\r\n$-1\r\n+x\r\n") == "*3[:1 *2 :2 nil +x ]");
    CHECK(first_of(std::string_view("$4\r\n\0\r\n\0\r\n", 10)) == "$" + std::string("\0\r\n\0", 4));
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

TEST_CASE("texts of a nested array survive until the array is complete, byte by byte") {
    std::string stream = "*3\r\n" + bulk(std::string(500, 'a')) + "*2\r\n"
                         + bulk(std::string(2'000, 'b')) + bulk("c") + bulk(std::string(9, 'd'));
    reply_reader reader;
    for (std::size_t i = 0; i + 1 < stream.size(); ++i) {
        feed(reader, {&stream[i], 1});
        REQUIRE(reader.next() == nullptr);
    }
    feed(reader, {&stream.back(), 1});
    const reply* const all = reader.next();
    REQUIRE(all != nullptr);
    REQUIRE(all->elements.size() == 5);
    CHECK(all->elements[0].text == std::string(500, 'a'));
    CHECK(all->elements[2].text == std::string(2'000, 'b'));
    CHECK(all->elements[3].text == "c");
    CHECK(all->elements[4].text == std::string(9, 'd'));
}

TEST_CASE("a reply that grows too large is refused before it is complete") {
    for (const std::string& start : {std::string("$100000000\r\n"), std::string("+")}) {
        reply_reader reader;
        feed(reader, start);
        CHECK(reader.next() == nullptr);
        const std::string piece(16 * 1024, 'x');
        std::size_t fed = 0;
        while (reader.error().empty() && fed < 2 * reply_reader::reply_bytes_max) {
            feed(reader, piece);
            CHECK(reader.next() == nullptr);
            fed += piece.size();
        }
        CHECK(reader.error().find("larger than 262144 bytes") != std::string::npos);
        CHECK(fed <= reply_reader::reply_bytes_max + piece.size());
    }
}

TEST_CASE("an array of very many elements is refused before it is complete") {
    reply_reader reader;
    feed(reader, "*100000000\r\n");
    CHECK(reader.next() == nullptr);
    std::string piece;
    for (int i = 0; i < 4'096; ++i) {
        piece += ":1\r\n";
    }
    for (int i = 0; i < 32 && reader.error().empty(); ++i) {
        feed(reader, piece);
        CHECK(reader.next() == nullptr);
    }
    CHECK(reader.error().find("larger than") != std::string::npos);
}

TEST_CASE("a reply of the largest size is read, one byte more is refused") {
    const std::string largest(reply_reader::reply_bytes_max, 'i');
    CHECK(first_of(bulk(largest)) == "$" + largest);
    CHECK(first_of(bulk(largest + "i")).find("larger than") != std::string::npos);
}

TEST_CASE("an invalid reply is an error with a reason") {
    for (const std::string_view bytes :
         {"hello\r\n",
          "HTTP/1.1 400 Bad Request\r\n\r\n",
          "?\r\n",
          "\r\n",
          ":abc\r\n",
          ":\r\n",
          "$abc\r\n",
          "*x\r\n",
          ":1x\r\n",
          ":1\rx\r\n"}) {
        CAPTURE(bytes);
        reply_reader reader;
        CHECK(all_of(reader, bytes).empty());
        CHECK(reader.error().starts_with("malformed reply: "));
    }
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

TEST_CASE("replies before the malformed one count, none after it") {
    reply_reader reader;
    CHECK(
        all_of(reader, "+OK\r\n:1\r\ngarbage\r\n+OK\r\n") == std::vector<std::string>{"+OK", ":1"});
    CHECK(!reader.error().empty());
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

TEST_CASE("garbage ends in an error or in silence, never in a crash") {
    std::mt19937 random(3);
    static constexpr std::string_view letters = "+-:$*_#,(~>%|0123456789\r\nabc";
    for (int turn = 0; turn < 20'000; ++turn) {
        std::string bytes;
        const std::size_t size = random() % 40;
        for (std::size_t i = 0; i < size; ++i) {
            bytes += letters[random() % letters.size()];
        }
        reply_reader reader;
        std::size_t found = 0;
        for (std::size_t at = 0; at < bytes.size(); at += 7) {
            found += all_of(reader, std::string_view(bytes).substr(at, 7)).size();
        }
        REQUIRE(found <= size);
    }
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
}

TEST_CASE("a string that is odd is the same wherever the stream is cut") {
    for (const std::string bytes :
         {"$03\r\nabc\r\n", "$00\r\n\r\n", "$3\r\nabcxx", "$3\nabc\r\n"}) {
        CAPTURE(bytes);
        reply_reader reader;
        const std::string_view whole = bytes;
        feed(reader, whole.substr(0, 2));
        CHECK(reader.next() == nullptr);
        feed(reader, whole.substr(2));
        const reply* const found = reader.next();
        CHECK(
            (found != nullptr ? "$" + std::string(found->text) : "nothing: " + reader.error())
            == first_of(bytes));
    }
}

TEST_CASE("nothing has no number, wherever the stream is cut") {
    reply_reader reader;
    for (const std::string_view part : {"$-", "1\r\n"}) {
        feed(reader, part);
    }
    const reply* const found = reader.next();
    REQUIRE(found != nullptr);
    CHECK(found->type == reply_type::nil);
    CHECK(found->integer == 0);
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
