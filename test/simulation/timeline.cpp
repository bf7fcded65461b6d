#include "timeline.hpp"

#include "core/bytes/guarded_scripts.hpp"
#include "core/bytes/heal_scripts.hpp"
#include "core/bytes/scripts.hpp"

#include <cstdio>

namespace simulation {

namespace {

struct named_script {
    std::string_view name;
    const redlock::core::script& what;
};

constexpr named_script named[] = {
    {"compare_and_extend_each", redlock::core::compare_and_extend_each},
    {"HANDSHAKE", redlock::core::guarded_handshake},
    {"ACQUIRE", redlock::core::guarded_acquire},
    {"RAISE", redlock::core::guarded_raise},
    {"EXTEND", redlock::core::guarded_extend},
    {"HEAL", redlock::core::guarded_heal},
    {"RELEASE", redlock::core::guarded_release},
};

} // namespace

void timeline::note(nanos at, std::string_view who, std::string_view what) {
    char when[32];
    std::snprintf(
        when,
        sizeof when,
        "%6lld.%06lld ",
        static_cast<long long>(at / ms),
        static_cast<long long>(at % ms));
    text_ += when;
    text_ += who;
    text_.append(who.size() < 8 ? 8 - who.size() : 1, ' ');
    text_ += what;
    text_ += '\n';
}

std::string describe_command(std::span<const std::string_view> words) {
    std::string out;
    for (std::size_t i = 0; i < words.size(); ++i) {
        std::string_view word = words[i];
        if (i == 1) {
            for (const named_script& one : named) {
                if (word == one.what.text || word == one.what.sha1) {
                    word = one.name;
                }
            }
        }
        // Tokens and run ids are distinguished by their first digits.
        const bool long_word = word.size() >= 40;
        out += (out.empty() ? "" : " ") + std::string(long_word ? word.substr(0, 8) : word);
    }
    return out;
}

} // namespace simulation
