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

quorum::quorum(std::size_t size, const tuning& tune)
    : masters(size),
      context(std::make_shared<boost::asio::io_context>()),
      io(*context) {
    for (const fake_master& master : masters) {
        settings.masters.emplace_back(master.url());
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
    each(&fake_master::require, settings.password);
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

acquisition& quorum::begin_acquire(const target& what, const acquire_options& options) {
    return begin<acquisition>(
        [&](auto token) { manager->async_acquire(what, options, std::move(token)); });
}

release_outcome& quorum::begin_release(lock& held) {
    return begin<release_outcome>([&](auto token) { held.async_release(std::move(token)); });
}

extend_outcome& quorum::begin_extend(lock& held, std::chrono::milliseconds ttl) {
    return begin<extend_outcome>([&](auto token) { held.async_extend(ttl, std::move(token)); });
}

loss_outcome& quorum::begin_wait_lost(lock& held) {
    return begin<loss_outcome>([&](auto token) { held.async_wait_lost(std::move(token)); });
}

query_outcome& quorum::begin_query(const std::string& resource) {
    return begin<query_outcome>(
        [&](auto token) { manager->async_query(resource, std::move(token)); });
}

nothing& quorum::begin_ready() {
    return begin<nothing>([&](auto token) { manager->async_ready(std::move(token)); });
}

nothing& quorum::begin_run() {
    return begin<nothing>([&](auto token) { manager->async_run(std::move(token)); });
}

nothing& quorum::begin_close() {
    return begin<nothing>([&](auto token) { manager->async_close(std::move(token)); });
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
