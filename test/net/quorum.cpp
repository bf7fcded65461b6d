#include "quorum.hpp"

namespace redlock::test {

acquire_options once(std::chrono::milliseconds ttl) {
    acquire_options options;
    options.ttl = ttl;
    options.wait = wait_for::none();
    options.renew = renewal::off;
    return options;
}

acquire_options patiently(std::chrono::milliseconds ttl) {
    acquire_options options = once(ttl);
    options.wait = wait_for::forever();
    return options;
}

quorum::quorum(std::size_t masters, const tuning& tune)
    : quorum(std::vector<fake_options>(masters), tune) {}

quorum::quorum(const std::vector<fake_options>& options, const tuning& tune)
    : context(std::make_shared<boost::asio::io_context>()),
      io(*context) {
    for (const fake_options& one : options) {
        masters.emplace_back(one);
        settings.masters.emplace_back(masters.back().url());
    }
    settings.protocol = protocol::plain;
    settings.connect_timeout = 10s;
    settings.master_timeout = 2s;
    settings.reconnect_delay_min = 5ms;
    settings.reconnect_delay_max = 50ms;
    settings.health_check_interval = 1h; // no command that a test does not expect
    settings.retry_delay_min = 2ms;
    settings.retry_delay_max = 20ms;
    settings.release_notifications = false; // nor a connection
    settings.log.level = log_level::debug;
    settings.log.write = [log = log_](log_level, std::string_view line) {
        const std::lock_guard lock(log->guard);
        log->text.emplace_back(line);
    };
    if (tune) {
        tune(settings);
    }
    manager.emplace(io.get_executor(), settings);
}

void quorum::start() {
    start(masters.size());
}

void quorum::start(std::size_t wanted) {
    running = &begin_run();
    run_until([this, wanted] { return admitted() >= wanted; });
}

void quorum::close() {
    wait(begin_close());
    if (running != nullptr) {
        wait(*running);
    }
}

void quorum::poll() {
    io.restart();
    io.poll();
}

acquisition& quorum::begin_acquire(const std::string& resource, const acquire_options& options) {
    auto& made = keep<acquisition>();
    manager->async_acquire(resource, options, with_diagnostics(made.why(), made.handler()));
    return made;
}

release_outcome& quorum::begin_release(lock& held) {
    auto& made = keep<release_outcome>();
    held.async_release(with_diagnostics(made.why(), made.handler()));
    return made;
}

extend_outcome& quorum::begin_extend(lock& held, std::chrono::milliseconds ttl) {
    auto& made = keep<extend_outcome>();
    held.async_extend(ttl, with_diagnostics(made.why(), made.handler()));
    return made;
}

loss_outcome& quorum::begin_wait_lost(lock& held) {
    auto& made = keep<loss_outcome>();
    held.async_wait_lost(with_diagnostics(made.why(), made.handler()));
    return made;
}

query_outcome& quorum::begin_query(const std::string& resource) {
    auto& made = keep<query_outcome>();
    manager->async_query(resource, made.handler());
    return made;
}

nothing& quorum::begin_ready() {
    auto& made = keep<nothing>();
    manager->async_ready(made.handler());
    return made;
}

nothing& quorum::begin_run() {
    auto& made = keep<nothing>();
    manager->async_run(made.handler());
    return made;
}

nothing& quorum::begin_close() {
    auto& made = keep<nothing>();
    manager->async_close(made.handler());
    return made;
}

lock quorum::acquired(const std::string& resource, const acquire_options& options) {
    acquisition& one = acquire(resource, options);
    if (one.error()) {
        throw std::runtime_error("not acquired: " + to_string(one.why()));
    }
    return std::move(one.value());
}

std::size_t quorum::keys() const {
    std::size_t found = 0;
    for (const fake_master& master : masters) {
        found += master.keys().size();
    }
    return found;
}

std::size_t quorum::count(const std::string& name) const {
    std::size_t found = 0;
    for (const fake_master& master : masters) {
        found += master.count(name);
    }
    return found;
}

std::vector<std::string> quorum::log() const {
    const std::lock_guard lock(log_->guard);
    return log_->text;
}

std::string quorum::all_words(const diagnostics& why) const {
    std::string words = why.message + "\n" + to_string(why) + "\n";
    for (const master_vote& vote : why.votes) {
        words += vote.endpoint + " " + vote.text + "\n";
    }
    const health state = manager->get_health();
    words += to_string(state) + "\n";
    for (const master_health& master : state.masters) {
        words += master.endpoint + " " + master.text + "\n";
    }
    for (const std::string& line : log()) {
        words += line + "\n";
    }
    return words;
}

} // namespace redlock::test
