#include "compiled.hpp"

#include <redlock/version.hpp>

#include <cstdio>
#include <string_view>

// meson.build and version.hpp name the version, each for readers of its own.
static_assert(std::string_view(REDLOCK_VERSION_STRING) == VERSION);

int main() {
    int count = 0;
    for (const compiled* unit = compiled::first; unit != nullptr; unit = unit->next) {
        std::printf("ok %d - %s compiles alone and twice\n", ++count, unit->header);
    }
    std::printf("1..%d\n", count);
    return count == 0 ? 1 : 0;
}
