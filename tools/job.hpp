// The tool as a part of a shell's job, while the command has a process group of its own.

#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <signal.h>

#include <functional>
#include <memory>

namespace cli {

namespace asio = boost::asio;

/// While it lives, the stop signals of the terminal driver do not stop the tool. They come if
/// another process of its group uses the terminal, such as a pager.
class job {
public:
    /// Calls `wanted` for each of these signals.
    job(asio::io_context& io, std::function<void()> wanted);
    ~job();
    job(const job&) = delete;
    job& operator=(const job&) = delete;

    /// Stops the tool, or its process group as Ctrl-Z does, until it is continued. Returns whether
    /// that was so: in a group whose parents are in other sessions the key has no effect.
    static bool stop(bool group);

private:
    void listen();
    bool take() const noexcept;

    sigset_t blocked_{};
    sigset_t before_{};
    std::function<void()> wanted_;
    std::shared_ptr<job*> self_ = std::make_shared<job*>(this);
    asio::posix::stream_descriptor signals_;
};

} // namespace cli
