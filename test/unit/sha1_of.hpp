// What the server calls a script: the SHA-1 of its text.
#pragma once

#include <boost/uuid/detail/sha1.hpp>

#include <string>
#include <string_view>

namespace redlock::test {

inline std::string sha1_of(std::string_view text) {
    boost::uuids::detail::sha1 hash;
    hash.process_bytes(text.data(), text.size());
    unsigned int digest[5];
    hash.get_digest(digest);
    std::string out;
    for (const unsigned int word : digest) {
        for (int shift = 28; shift >= 0; shift -= 4) {
            out += "0123456789abcdef"[(word >> static_cast<unsigned>(shift)) & 15U];
        }
    }
    return out;
}

} // namespace redlock::test
