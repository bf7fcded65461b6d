// One server process on a free loopback port, which ends with the tool.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace cli {

class local_server {
public:
    enum class state { up, hung, down };

    /// Starts it, waits until it replies, and writes its memory record: no lock with this prefix
    /// can have been on it, so it votes at once. Throws `failure`.
    local_server(std::string program, std::string directory, const std::string& key_prefix);
    ~local_server();
    local_server(local_server&& other) noexcept;
    local_server& operator=(local_server&&) = delete;

    std::string url() const;
    /// Also notices that another process has ended it.
    state now() noexcept;

    void kill() noexcept;
    void hang() noexcept;
    void resume() noexcept;
    /// On the same port, and empty: its memory record is gone, so it is in quarantine.
    void restart();

private:
    void launch();
    bool answers() const;
    void write_record(const std::string& key_prefix) const;

    std::string program_;
    std::string directory_;
    std::uint16_t port_ = 0;
    pid_t pid_ = -1;
    bool hung_ = false;
};

/// Returns REDLOCK_REDIS_SERVER, or redis-server or valkey-server from PATH. Throws.
std::string server_program();

} // namespace cli
