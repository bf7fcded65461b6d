// Our library, controlled by lines: see client.py for their form. It neither publishes nor awaits
// release notifications, because the other clients have none.
//
//     redlock_client plain|guarded PREFIX URL...
#include <redlock/blocking.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

namespace {

using std::chrono::milliseconds;

class client {
public:
    explicit client(const redlock::config& settings) : manager_(settings) {}

    /// The answer to one line.
    std::string obey(const std::string& line) {
        std::istringstream words(line);
        std::string order;
        std::string resource;
        long ttl = 0;
        words >> order >> resource >> ttl;
        try {
            if (order == "acquire") {
                long wait = 0;
                words >> wait;
                held_[resource] = take(resource, milliseconds(ttl), milliseconds(wait));
                return "yes " + std::string(held_[resource].secret());
            }
            if (order == "extend") {
                held_[resource].extend(milliseconds(ttl));
                return "yes ";
            }
            if (order == "release") {
                const redlock::release_result result = held_[resource].release();
                const bool released = result == redlock::release_result::released;
                return (released ? "yes " : "no ") + std::string(to_string(result));
            }
            int rounds = 0;
            std::filesystem::path directory;
            words >> rounds >> directory;
            contend(resource, milliseconds(ttl), rounds, directory);
            return "yes ";
        } catch (const std::exception& error) {
            return std::string("no ") + error.what();
        }
    }

private:
    redlock::blocking::lock take(const std::string& resource, milliseconds ttl, milliseconds wait) {
        redlock::acquire_options options;
        options.ttl = ttl;
        options.wait = wait;
        options.renew = false;
        return manager_.acquire(resource, options);
    }

    static void pass(const std::filesystem::path& directory) {
        const std::string inside = directory / "inside";
        const int file = ::open(inside.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
        if (file < 0) {
            std::ofstream(directory / "overlaps", std::ios::app) << "redlock\n";
            return;
        }
        ::close(file);
        long value = 0;
        std::ifstream(directory / "counter") >> value;
        std::ofstream(directory / "counter") << value + 1;
        ::unlink(inside.c_str());
    }

    void contend(
        const std::string& resource,
        milliseconds ttl,
        int rounds,
        const std::filesystem::path& directory) {
        while (rounds > 0) {
            redlock::blocking::lock mine = take(resource, ttl, std::chrono::minutes(1));
            if (mine.async().remaining() > ttl / 2) {
                pass(directory);
                --rounds;
            }
            mine.release();
        }
    }

    redlock::blocking::manager manager_;
    std::map<std::string, redlock::blocking::lock> held_;
};

} // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::cerr << "usage: redlock_client plain|guarded PREFIX URL...\n";
        return 2;
    }
    redlock::config settings;
    settings.protocol =
        std::string(argv[1]) == "plain" ? redlock::protocol::plain : redlock::protocol::guarded;
    settings.key_prefix = argv[2];
    settings.masters.assign(argv + 3, argv + argc);
    settings.max_ttl = std::chrono::minutes(10);
    settings.release_notifications = false;
    settings.quarantine = false; // the masters are new, and stay
    client mine(settings);
    for (std::string line; std::getline(std::cin, line);) {
        std::cout << mine.obey(line) << std::endl;
    }
}
