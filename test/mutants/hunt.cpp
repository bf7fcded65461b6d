// The simulator, as scripts/mutants uses it.
//
// hunt --list: the names of all profiles, the focused ones first.
// hunt FIRST COUNT PROFILE...: seeds, over the profiles in turn; ends at the first violation.

#include "../simulation/profiles.hpp"
#include "../simulation/variants/focused.hpp"
#include "../simulation/world.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

using namespace simulation;

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "--list") {
        for (const auto all : {focused_profiles(), profiles()}) {
            for (const profile& kind : all) {
                std::printf("%s\n", std::string(kind.name).c_str());
            }
        }
        return 0;
    }
    std::vector<const profile*> kinds;
    for (int i = 3; i < argc; ++i) {
        kinds.push_back(find_any_profile(argv[i]));
        if (kinds.back() == nullptr) {
            std::fprintf(stderr, "no profile is called %s\n", argv[i]);
            return 2;
        }
    }
    const std::uint64_t first = std::strtoull(argv[1], nullptr, 10);
    const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
    lua_machine lua;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        const profile& kind = *kinds[seed % kinds.size()];
        const outcome ended = run(make_plan(seed, kind), lua);
        if (ended.broken) {
            std::printf(
                "%s %llu: %s: %s\n",
                std::string(kind.name).c_str(),
                static_cast<unsigned long long>(seed),
                std::string(to_string(ended.broken->broken)).c_str(),
                ended.broken->text.c_str());
            return 1;
        }
    }
    return 0;
}
