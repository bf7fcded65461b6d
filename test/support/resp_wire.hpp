// RESP2 as bytes, the server's side of it: replies are built, requests are parsed. Only arrays of
// bulk strings are requests here, as every client library sends them; the rest is a protocol error,
// so that a test notices a client that writes nonsense.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test {

namespace wire {
std::string status(std::string_view text); // +OK
std::string error(std::string_view text);  // -ERR no such key
std::string integer(std::int64_t value);
std::string bulk(std::string_view value);
std::string nil();
std::string array(const std::vector<std::string>& encoded_elements);
} // namespace wire

class request_parser {
public:
    void feed(std::string_view bytes);

    // The next complete request. Throws std::runtime_error on what is not one.
    std::optional<std::vector<std::string>> next();

private:
    // The number after the type byte at `at`, which then points behind its line.
    std::optional<std::size_t> header(std::size_t& at, char type) const;

    std::string buffer_;
    std::size_t used_ = 0;
};

} // namespace redlock::test
