// Masters in memory, a clock of the test, and a recorder that looks at each master's key once per
// millisecond; and the lines that draw.py reads.

#pragma once

#include <redlock/lock.hpp>
#include <redlock/testing.hpp>

#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace timelines {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

inline constexpr auto key = "redlock:{r}";

// A drift that can be seen: a tenth, where the default is a hundredth.
inline redlock::config visible_drift() {
    redlock::config config;
    config.clock_drift_factor = 0.1;
    config.master_timeout = 60ms;
    config.retry_delay_min = 5ms;
    config.retry_delay_max = 10ms;
    return config;
}

inline void require(bool holds, const char* what) {
    if (!holds) {
        throw std::runtime_error(what);
    }
}

class scene {
public:
    explicit scene(redlock::config config = visible_drift()) : quorum(5, std::move(config)) {
        quorum.manager();
        quorum.advance(1s);
        start_ = quorum.now();
    }

    // A row of the picture that is a client, and the handle that it will have.
    void client(std::string row, redlock::lock& handle) {
        clients_.push_back({std::move(row), &handle});
    }

    // The owner of a key, by its token; a token without an owner is A's.
    void owner(const std::string& token, std::string name) { owners_[token] = std::move(name); }

    double ms() const { return ms_at(quorum.now()); }
    double ms_at(redlock::time_point moment) const {
        return std::chrono::duration<double, std::milli>(moment - start_).count();
    }

    void advance(
        milliseconds span, const std::function<void()>& each = [] {}) {
        sample();
        for (milliseconds gone{0}; gone < span; gone += 1ms) {
            quorum.advance(1ms);
            sample();
            each();
        }
    }

    // Ends open bars and prints all of them; with `due` also the expiry of keys that were removed.
    void print_bars(bool due = false) {
        for (auto& [row, open] : open_) {
            bars_.push_back({row, open.what, open.since, ms(), 0});
        }
        open_.clear();
        for (const auto& one : bars_) {
            const auto known = owners_.find(one.what);
            const std::string kind = one.what == "held"       ? "held"
                                     : known == owners_.end() ? "key-a"
                                                              : known->second;
            print_bar(one.row, one.from, one.to, kind);
            if (due && one.due > one.to) {
                print_bar(one.row, one.to, one.due, "due");
            }
        }
    }

    static void print_bar(const std::string& row, double from, double to, const std::string& kind) {
        std::cout << "bar " << row << '|' << from << '|' << to << '|' << kind << '\n';
    }

    // When the master's key came or went, the n-th time.
    double change(std::size_t master, std::size_t n = 0) const { return changes_.at(master).at(n); }

    redlock::testing::virtual_quorum quorum;

private:
    struct bar {
        std::string row;
        std::string what; // a token, or "held"
        double from;
        double to;
        double due; // when it would have ended by itself
    };
    struct open_bar {
        std::string what;
        double since;
        double due;
    };

    void sample() {
        for (std::size_t i = 0; i < quorum.size(); ++i) {
            const std::string token = quorum.master(i).command({"GET", key});
            const double left = std::stod(quorum.master(i).command({"PTTL", key}));
            if (set("master " + std::to_string(i + 1),
                    token == "(nil)" ? "" : token,
                    ms() + left)) {
                changes_[i].push_back(ms());
            }
        }
        for (const auto& [row, handle] : clients_) {
            set(row, handle->held() ? "held" : "", 0);
        }
    }

    bool set(const std::string& row, const std::string& what, double due) {
        const auto found = open_.find(row);
        const std::string before = found == open_.end() ? "" : found->second.what;
        if (before == what) {
            if (found != open_.end()) {
                found->second.due = due;
            }
            return false;
        }
        if (found != open_.end()) {
            bars_.push_back({row, before, found->second.since, ms(), found->second.due});
            open_.erase(found);
        }
        if (!what.empty()) {
            open_[row] = {what, ms(), due};
        }
        return true;
    }

    redlock::time_point start_;
    std::vector<std::pair<std::string, redlock::lock*>> clients_;
    std::map<std::string, std::string> owners_;
    std::map<std::string, open_bar> open_;
    std::map<std::size_t, std::vector<double>> changes_;
    std::vector<bar> bars_;
};

// --- What is printed ----------------------------------------------------------------------------

inline void rows(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        std::cout << "row " << name << '\n';
    }
}

inline std::string master(std::size_t index) {
    return "master " + std::to_string(index + 1);
}

inline void masters() {
    for (std::size_t i = 0; i < 5; ++i) {
        std::cout << "row " << master(i) << '\n';
    }
}

inline void line(
    const std::string& from,
    double from_ms,
    const std::string& to,
    double to_ms,
    const std::string& kind) {
    std::cout << "line " << from << '|' << from_ms << '|' << to << '|' << to_ms << '|' << kind
              << '\n';
}

inline void mark(const std::string& row, double at, const std::string& text) {
    std::cout << "mark " << row << '|' << at << '|' << text << '\n';
}

inline void span(const std::string& row, double from, double to, const std::string& text) {
    std::cout << "span " << row << '|' << from << '|' << to << '|' << text << '\n';
}

} // namespace timelines
