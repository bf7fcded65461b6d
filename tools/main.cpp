// redlock: the command line of the library. See docs/cli.md.

#include "acquire.hpp"
#include "admin.hpp"
#include "bench.hpp"
#include "command_line.hpp"
#include "completion.hpp"
#include "doctor.hpp"
#include "ending.hpp"
#include "exit_code.hpp"
#include "init.hpp"
#include "local.hpp"
#include "manual.hpp"
#include "members.hpp"
#include "metrics.hpp"
#include "parent.hpp"
#include "redaction.hpp"
#include "run.hpp"
#include "size.hpp"
#include "status.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <string_view>
#include <system_error>

int main(int argc, char** argv) {
    // A caller may ignore it, and exec keeps that: the status of the command would be lost.
    std::signal(SIGCHLD, SIG_DFL);
    cli::be_init();
    const pid_t parent = ::getppid();
    try {
        cli::command_line line;
        cli::add_run(line);
        cli::add_acquire_commands(line);
        cli::add_status_commands(line);
        cli::add_admin_commands(line);
        cli::add_members_command(line);
        cli::add_doctor(line);
        cli::add_local(line);
        cli::add_metrics(line);
        cli::add_size(line);
        cli::add_bench(line);
        cli::add_completion(line);
        cli::add_manual(line);
        try {
            cli::read_command_line(line, argc, argv);
        } catch (const CLI::Success& asked) {
            errno = 0; // CLI11 flushes, and drops the error
            const int status = line.app.exit(asked);
            cli::require_written(errno);
            return status;
        }
        if (line.common.parent_death) {
            cli::end_with(parent);
        }
        for (const auto& one : line.actions) {
            if (one.asked->parsed()) {
                int status = 0;
                try {
                    status = one.what();
                } catch (const std::system_error& error) {
                    cli::require_written(error.code().value()); // it may be what a print has thrown
                    throw;
                }
                cli::require_written();
                return cli::ending(status);
            }
        }
        return 0;
    } catch (const cli::failure& error) {
        const bool quotes_file = error.code() == cli::exit_code::configuration;
        cli::say(quotes_file ? cli::without_hidden(error.what()) : error.what());
        return cli::ending(static_cast<int>(error.code()));
    } catch (const std::exception& error) {
        const std::string_view text = error.what(); // Boost adds the number and a line of its own
        cli::say(text.substr(0, text.find(" [system:")));
        return static_cast<int>(cli::exit_code::internal);
    }
}
