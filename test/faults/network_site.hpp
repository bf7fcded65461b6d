// Masters on hosts of their own, and a client on another: the test's thread is on the client's.
#pragma once

#include "integration/client.hpp"
#include "support/master_process.hpp"
#include "support/network.hpp"

/// Visibly, where the machine allows no such networks.
#define REQUIRE_NETWORK()                                                                          \
    do {                                                                                           \
        if (const std::string missing = redlock::test::network::missing(); !missing.empty()) {     \
            SKIP("no network namespaces: " << missing);                                            \
        }                                                                                          \
    } while (false)

namespace redlock::test {

class network_site {
public:
    explicit network_site(
        std::size_t n, const std::function<void(config&)>& change = [](config&) {})
        : net(n + 1),
          client_host(n) {
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
        change(settings);
    }

    void connect() { me.emplace(io, settings); }

    void until_admitted() { me->until_admitted(masters.size()); }

    // What the client says to these masters is lost, or what they say to it.
    void lose_requests(const std::vector<std::size_t>& to) { net.cut(client_host, to); }
    void mend_requests(const std::vector<std::size_t>& to) { net.mend(client_host, to); }
    void lose_answers(const std::vector<std::size_t>& of) {
        for (const std::size_t one : of) {
            net.cut(one, {client_host});
        }
    }
    void mend_answers(const std::vector<std::size_t>& of) {
        for (const std::size_t one : of) {
            net.mend(one, {client_host});
        }
    }

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
    std::optional<visit> here_;

public:
    asio::io_context io;
    std::optional<client> me;
};

} // namespace redlock::test
