#include "ledger.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace redlock::soak {

moment now() {
    timespec read{};
    ::clock_gettime(CLOCK_BOOTTIME, &read);
    return std::chrono::seconds(read.tv_sec) + std::chrono::nanoseconds(read.tv_nsec);
}

ledger::ledger(const std::filesystem::path& file)
    : fd_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    if (fd_ < 0) {
        throw std::system_error(errno, std::generic_category(), file.string());
    }
}

ledger::~ledger() {
    ::close(fd_);
}

void ledger::note(entry what, std::uint64_t token, moment at) const {
    std::string line(1, static_cast<char>(what));
    line += ' ' + std::to_string(token) + ' ' + std::to_string(at.count()) + '\n';
    if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        throw std::system_error(errno, std::generic_category(), "ledger");
    }
}

findings read_ledgers(const std::filesystem::path& directory) {
    findings found;
    for (const auto& file : std::filesystem::directory_iterator(directory)) {
        std::ifstream text(file.path());
        std::size_t open = found.tenures.size();
        // A line without an end is what a worker was killed in the middle of.
        for (std::string line; std::getline(text, line) && !text.eof();) {
            std::istringstream words(line);
            char what = 0;
            std::uint64_t token = 0;
            moment::rep at = 0;
            if (!(words >> what >> token >> at)) {
                throw std::runtime_error("not a ledger's line: " + line);
            }
            switch (static_cast<entry>(what)) {
            case entry::acquired:
                open = found.tenures.size();
                found.tenures.push_back({token, moment(at), moment(at)});
                break;
            case entry::believed:
                found.tenures.at(open).until = moment(at);
                break;
            case entry::written:
                ++found.written;
                break;
            case entry::stale:
                ++found.stale;
                break;
            case entry::wronged:
                ++found.wronged;
                break;
            case entry::lost:
                ++found.lost;
                break;
            default:
                throw std::runtime_error("not a ledger's line: " + line);
            }
        }
    }
    std::sort(found.tenures.begin(), found.tenures.end(), [](const tenure& a, const tenure& b) {
        return a.from < b.from;
    });
    return found;
}

std::size_t findings::overlaps() const {
    std::size_t count = 0;
    moment busy_until{};
    for (const tenure& one : tenures) {
        count += one.from < busy_until ? 1U : 0U;
        busy_until = std::max(busy_until, one.until);
    }
    return count;
}

std::size_t findings::disorder() const {
    std::size_t count = 0;
    std::uint64_t highest = 0;
    for (const tenure& one : tenures) {
        count += one.token <= highest ? 1U : 0U;
        highest = std::max(highest, one.token);
    }
    return count;
}

findings::service findings::availability(moment handoff, moment end) const {
    service result;
    if (tenures.empty()) {
        return result;
    }
    moment outage{};
    moment busy_until = tenures.front().from;
    const auto gap_until = [&](moment next) {
        const moment gap = std::max(moment(0), next - busy_until);
        result.longest_gap = std::max(result.longest_gap, gap);
        outage += gap > handoff ? gap : moment(0);
    };
    for (const tenure& one : tenures) {
        gap_until(one.from);
        busy_until = std::max(busy_until, one.until);
    }
    gap_until(end);
    const auto whole = std::max(end, busy_until) - tenures.front().from;
    result.share =
        whole.count() == 0
            ? 0
            : 1.0 - static_cast<double>(outage.count()) / static_cast<double>(whole.count());
    return result;
}

} // namespace redlock::soak
