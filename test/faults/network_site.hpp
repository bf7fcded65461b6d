// Masters on hosts of their own, and a client on another: the test's thread is on the client's.
#pragma once

#include "integration/client.hpp"
#include "support/master_process.hpp"
#include "support/network.hpp"

namespace redlock::test {

enum class way { requests, answers, both };

/// Skips the test, visibly, where the machine allows no such networks.
class network_site {
public:
    explicit network_site(std::size_t n) : net(possible(n + 1)), client_host(n) {
        for (std::size_t i = 0; i < n; ++i) {
            const visit there(net.host(i));
            master_options options;
            options.bind = network::address(i);
            options.extra = {"--protected-mode", "no"};
            masters.emplace_back(options);
            everyone.push_back(i);
        }
        here_.emplace(net.host(client_host));
        std::vector<std::string> urls;
        for (const master_process& master : masters) {
            urls.push_back(master.url());
        }
        settings = config_for(urls);
        settings.protocol = protocol::guarded;
        settings.master_timeout = 150ms;
        settings.connect_timeout = 300ms;
        settings.health_check_interval = 100ms;
    }

    void connect() { me.emplace(io, settings); }

    void until_admitted() { me->until_admitted(masters.size()); }

    // What the client says to these masters is lost, or what they say to it.
    void cut(way lost, const std::vector<std::size_t>& them) { each(&network::cut, lost, them); }
    void mend(way lost, const std::vector<std::size_t>& them) { each(&network::mend, lost, them); }

    // From its own host: no partition is in the way.
    std::string tell(std::size_t master, const std::vector<std::string>& command) {
        const visit there(net.host(master));
        return masters[master].command(command);
    }

    network net;
    std::size_t client_host;
    std::vector<std::size_t> everyone; // the masters' hosts
    std::vector<master_process> masters;
    config settings;

private:
    static std::size_t possible(std::size_t hosts) {
        if (const std::string missing = network::missing(); !missing.empty()) {
            SKIP("no network namespaces: " << missing);
        }
        return hosts;
    }
    void each(
        void (network::*change)(std::size_t, const std::vector<std::size_t>&),
        way lost,
        const std::vector<std::size_t>& them) {
        if (lost != way::answers) {
            (net.*change)(client_host, them);
        }
        if (lost != way::requests) {
            for (const std::size_t one : them) {
                (net.*change)(one, {client_host});
            }
        }
    }

    std::optional<visit> here_;

public:
    asio::io_context io;
    std::optional<client> me;
};

} // namespace redlock::test
