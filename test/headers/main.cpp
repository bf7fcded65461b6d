#include <redlock/version.hpp>

#include <string_view>

// meson.build and version.hpp name the version, each for readers of its own.
static_assert(std::string_view(REDLOCK_VERSION_STRING) == VERSION);

int main() {} // that it links is the test
