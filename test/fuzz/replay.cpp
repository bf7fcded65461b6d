// Runs a fuzz target over files, where there is no fuzzer: replay FILE|DIRECTORY... A target that
// finds something ends the program.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

void run(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        throw std::runtime_error("cannot read " + file.string());
    }
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    // A copy without a byte more than that, so that a sanitizer sees a read past the end.
    const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
    // Before it is run: the last line names what ended the program.
    std::printf("%s\n", file.string().c_str());
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

} // namespace

int main(int argc, char** argv) {
    std::size_t count = 0;
    try {
        for (const std::string& argument : std::vector<std::string>(argv + 1, argv + argc)) {
            if (!fs::is_directory(argument)) {
                run(argument);
                ++count;
                continue;
            }
            for (const auto& entry : fs::recursive_directory_iterator(argument)) {
                if (entry.is_regular_file()) {
                    run(entry.path());
                    ++count;
                }
            }
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return EXIT_FAILURE;
    }
    std::printf("%zu inputs\n", count);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE; // no input: nothing was shown
}
