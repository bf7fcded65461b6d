// What the server calls a script: the SHA-1 of its text.
#pragma once

#include <boost/uuid/detail/sha1.hpp>

#include <string>
#include <string_view>

namespace redlock::test {

inline std::string sha1_of(std::string_view text) {
    boost::uuids::detail::sha1 hash;
    hash.process_bytes(text.data(), text.size());
    boost::uuids::detail::sha1::digest_type digest; // five words, and since Boost 1.86 twenty bytes
    hash.get_digest(digest);
    std::string out;
    for (const unsigned int part : digest) {
        for (int shift = 8 * static_cast<int>(sizeof digest[0]) - 4; shift >= 0; shift -= 4) {
            out += "0123456789abcdef"[(part >> static_cast<unsigned>(shift)) & 15U];
        }
    }
    return out;
}

} // namespace redlock::test
