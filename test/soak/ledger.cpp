#include "ledger.hpp"

#include <redlock/clock.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace redlock::soak {

moment now() {
    return clock::now().time_since_epoch();
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

const ledger_reader::account& ledger_reader::read(const std::filesystem::path& file) {
    open_file& from = files_[file];
    std::ifstream text(file);
    text.seekg(from.read);
    // A line without an end is being written, or the worker was killed in the middle of it.
    for (std::string line; std::getline(text, line) && !text.eof();) {
        from.read += static_cast<std::streamoff>(line.size() + 1);
        take(from, line);
    }
    return from.notes;
}

void ledger_reader::take(open_file& from, const std::string& line) {
    std::istringstream words(line);
    char letter = 0;
    std::uint64_t token = 0;
    moment::rep number = 0;
    if (!(words >> letter >> token >> number)) {
        throw std::runtime_error("not a ledger's line: " + line);
    }
    account& notes = from.notes;
    const auto what = static_cast<entry>(letter);
    const moment at(number);
    switch (what) {
    case entry::acquired:
        from.tenure = found_.tenures.size();
        found_.tenures.push_back({token, at, at});
        notes.acquired = at;
        ++notes.tenures;
        break;
    case entry::believed:
        found_.tenures.at(from.tenure).until = at;
        break;
    case entry::failed:
        ++found_.failed;
        break;
    case entry::written:
        ++found_.written;
        break;
    case entry::stale:
        ++found_.stale;
        break;
    case entry::wronged:
        ++found_.wronged;
        break;
    case entry::lost:
        ++found_.lost;
        ++notes.lost;
        break;
    case entry::asked:
    case entry::left:
        break;
    default:
        throw std::runtime_error("not a ledger's line: " + line);
    }
    if (what != entry::believed || !notes.believes()) {
        notes.since = at;
    }
    notes.last = what;
}

findings ledger_reader::found() const {
    findings all = found_;
    std::sort(all.tenures.begin(), all.tenures.end(), [](const tenure& a, const tenure& b) {
        return a.from < b.from;
    });
    return all;
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

} // namespace redlock::soak
