#include "site.hpp"

namespace redlock::soak {
namespace {

test::master_options vault_options() {
    test::master_options options;
    options.unix_socket = true;
    return options;
}

test::master_options master_options_of(std::size_t master, bool on_network) {
    test::master_options options;
    options.appendonly = site::durable(master);
    options.appendfsync = "always";
    if (on_network) {
        options.bind = test::network::address(master);
        options.extra = {"--protected-mode", "no"};
    }
    return options;
}

// Whatever is done about a master of the network is done from its own host: its cable may be cut.
class at_host {
public:
    at_host(const std::optional<test::network>& network, std::size_t host) {
        if (network) {
            there_.emplace(network->host(host));
        }
    }

private:
    std::optional<test::visit> there_;
};

} // namespace

site::site(site_options options) : options_(std::move(options)), vault_(vault_options()) {
    std::filesystem::create_directory(dir_.path() / "ledgers");
    store_ = std::make_unique<store>(vault_.unix_path());
    if (options_.namespaces) {
        network_.emplace(options_.masters + options_.workers);
    }
    for (std::size_t i = 0; i < options_.masters; ++i) {
        const at_host there(network_, i);
        masters_.emplace_back(master_options_of(i, has_network()));
    }
    restarted_.resize(options_.masters);
    workers_.resize(options_.workers);
    for (std::size_t i = 0; i < options_.workers; ++i) {
        start_worker(i);
    }
}

void site::restart_master(std::size_t i, bool empty) {
    const at_host there(network_, i);
    restarted_[i] = now();
    if (empty) {
        masters_[i].restart_empty();
    } else {
        masters_[i].restart();
    }
}

std::string site::tell_master(std::size_t i, const std::vector<std::string>& command) {
    const at_host there(network_, i);
    return masters_[i].command(command);
}

void site::start_worker(std::size_t i) {
    crew_member& one = workers_.at(i);
    ++one.incarnation;
    worker_settings settings;
    settings.store = vault_.unix_path();
    settings.ledger = ledger_of(i);
    settings.seed = options_.seed + i + 1'000 * one.incarnation;
    settings.slow = options_.slow;
    settings.dawdles = !options_.slow && i % 2 == 0;
    settings.how = options_.how;
    settings.masters = urls();
    std::vector<std::string> line = command_line(settings);
    line.insert(line.begin(), options_.program.string());
    const at_host there(network_, options_.masters + i);
    one.process = test::child_process(line, output_of(i));
    one.wanted = true;
}

void site::kill_worker(std::size_t i) {
    workers_.at(i).wanted = false;
    workers_[i].process.kill();
}

std::optional<std::size_t> site::holder() {
    std::optional<std::size_t> latest;
    moment since{};
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        if (const moment at = account_of(i).acquired; at > since) {
            latest = i;
            since = at;
        }
    }
    return latest;
}

const ledger_reader::account& site::account_of(std::size_t worker) {
    return ledgers_.read(ledger_of(worker));
}

const std::vector<std::string>& site::deserters() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        if (workers_[i].wanted && !workers_[i].process.running()) {
            deserters_.push_back("worker " + worker_name(i) + ": " + test::read_text(output_of(i)));
            workers_[i].wanted = false;
        }
    }
    return deserters_;
}

findings site::conclude() {
    deserters();
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        kill_worker(i);
    }
    for (const auto& file : std::filesystem::directory_iterator(dir_.path() / "ledgers")) {
        ledgers_.read(file.path());
    }
    return found();
}

std::vector<std::string> site::urls() const {
    std::vector<std::string> all;
    for (const test::master_process& master : masters_) {
        all.push_back(master.url());
    }
    return all;
}

std::filesystem::path site::ledger_of(std::size_t worker) const {
    const std::string number = std::to_string(workers_.at(worker).incarnation);
    return dir_.path() / "ledgers" / (std::to_string(worker) + "." + number);
}

std::filesystem::path site::output_of(std::size_t worker) const {
    return dir_.path() / ("worker-" + std::to_string(worker) + ".txt");
}

} // namespace redlock::soak
