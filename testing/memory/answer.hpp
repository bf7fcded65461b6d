// The reply of a master as a value: converted to bytes for a client, or to Lua for a script.

#pragma once

#include <redlock/version.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

struct answer {
    enum class kind : std::uint8_t { status, error, integer, bulk, nil, array };

    kind what = kind::nil;
    std::int64_t number = 0;
    std::string text;
    std::vector<answer> items;

    static answer status(std::string_view text) { return of(kind::status, text); }
    static answer ok() { return status("OK"); }
    static answer error(std::string_view text) { return of(kind::error, text); }
    static answer bulk(std::string_view text) { return of(kind::bulk, text); }
    static answer integer(std::int64_t value) {
        answer made;
        made.what = kind::integer;
        made.number = value;
        return made;
    }
    static answer nil() { return {}; }
    static answer array(std::vector<answer> items) {
        answer made;
        made.what = kind::array;
        made.items = std::move(items);
        return made;
    }

    bool is_error() const noexcept { return what == kind::error; }

    /// Appends the reply in the wire protocol.
    void encode(std::string& out) const;
    /// Returns the reply as text for people and for comparisons: integers in decimal, "(nil)",
    /// "(error) text", and one line for each element of an array.
    std::string describe() const;

private:
    static answer of(kind what, std::string_view text) {
        answer made;
        made.what = what;
        made.text = text;
        return made;
    }
};

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
