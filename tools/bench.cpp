#include "bench.hpp"

#include "command_line.hpp"
#include "exit_code.hpp"
#include "local.hpp"
#include "options.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <vector>

namespace cli {
namespace {

constexpr const char* masters_variable = "QUORUM_BENCH_MASTERS";
constexpr std::size_t benched_masters_max = 32;

struct bench_wishes {
    std::size_t local = 5;
    std::vector<std::string> workloads;
    bool full = false;
    std::string html;
};

// As in the user and the password of a URL.
std::string percent_encoded(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z')) {
            out += c;
        } else {
            fmt::format_to(std::back_inserter(out), "%{:02X}", byte);
        }
    }
    return out;
}

std::string benched_url(const redlock::endpoint& master, const redlock::config& how) {
    if (master.tls || !master.path.empty() || master.database != 0) {
        throw failure(
            exit_code::configuration,
            fmt::format(
                "{}: the benchmark speaks plain TCP to database 0 only", to_string(master)));
    }
    const bool named = !master.password.empty();
    const std::string& username = named ? master.username : how.username;
    const std::string& password = named ? master.password : how.password;
    return fmt::format(
        "redis://{}{}",
        password.empty()
            ? ""
            : fmt::format("{}:{}@", percent_encoded(username), percent_encoded(password)),
        to_string(master));
}

std::string benched_masters(const settings& given) {
    redlock::config how = config_of(given);
    if (!how.password_file.empty()) {
        how.password = password_of(how.password_file);
    }
    std::string out;
    for (const redlock::endpoint& master : how.masters) {
        out += (out.empty() ? "" : ",") + benched_url(master, how);
    }
    return out;
}

std::string benchmark_program() {
    if (const char* const chosen = std::getenv("REDLOCK_QUORUM_BENCH");
        chosen != nullptr && *chosen != '\0') {
        return chosen;
    }
    std::error_code ignored;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    for (const std::filesystem::path& directory :
         {self.parent_path(), std::filesystem::path(REDLOCK_LIBEXEC_DIR)}) {
        const std::filesystem::path program = directory / "quorum_bench";
        if (::access(program.c_str(), X_OK) == 0) {
            return program.string();
        }
    }
    throw failure(
        exit_code::not_found,
        "the benchmark is not installed: quorum_bench is neither next to redlock nor "
        "in " REDLOCK_LIBEXEC_DIR "; set REDLOCK_QUORUM_BENCH to its path");
}

// Returns only by exception: the benchmark replaces this process, with its signals and its exit
// status.
[[noreturn]] void
become_benchmark(const command_line& line, const bench_wishes& wanted, bool local) {
    std::vector<std::string> words{benchmark_program()};
    const auto add = [&words](std::string option, std::string value) {
        words.push_back(std::move(option));
        words.push_back(std::move(value));
    };
    if (local) {
        ::unsetenv(masters_variable);
        add("--start", std::to_string(wanted.local));
        add("--server", server_program());
    } else {
        // Not an option: a command line is visible to all users.
        ::setenv(masters_variable, benched_masters(line.common).c_str(), 1);
    }
    add("--master-timeout", std::to_string(line.common.master_timeout.count()));
    for (const std::string& one : wanted.workloads) {
        add("--workload", one);
    }
    if (wanted.full) {
        words.emplace_back("--full");
    }
    if (!wanted.html.empty()) {
        add("--html", wanted.html);
    }
    if (line.common.json) {
        add("--json", "-");
    }
    words.insert(words.end(), line.command.begin(), line.command.end());
    std::vector<char*> argv;
    for (std::string& word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    ::execv(argv.front(), argv.data());
    throw failure(
        errno == ENOENT ? exit_code::not_found : exit_code::not_executable,
        fmt::format("{} cannot be run: {}", words.front(), std::strerror(errno)));
}

} // namespace

void add_bench(command_line& to) {
    const auto wanted = std::make_shared<bench_wishes>();
    CLI::App& app = to.add(
        "bench",
        "Benchmark a quorum: existing masters, or new ones on this machine",
        "  redlock bench --local --html report.html          # starts five masters\n"
        "  redlock bench --masters redis://a,redis://b,redis://c --workload latency,throughput\n"
        "  redlock bench --local 3 --workload latency -- --rounds 10   # options of quorum_bench\n"
        "  redlock bench --local -- --help                   # lists them\n\n"
        "Puts the masters under full load: do not run it on masters in use. Exits with the status\n"
        "of quorum_bench.");
    CLI::Option* const local =
        app.add_option("--local", wanted->local, "Number of masters to start on this machine")
            ->expected(0, 1)
            ->check(whole_number(1, benched_masters_max))
            ->type_name("[N]")
            ->default_str(std::to_string(wanted->local));
    app.add_option(
           "--workload",
           wanted->workloads,
           "Any of latency, throughput, handoff, faults, memory; default: all")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("NAME,...");
    app.add_flag("--full", wanted->full, "Run long rounds, for results to keep");
    app.add_option("--html", wanted->html, "Write the report as an HTML page")->type_name("FILE");
    to.when(
        app, [wanted, local, &to]() -> int { become_benchmark(to, *wanted, local->count() > 0); });
}

} // namespace cli
