// The door of the fake master: hands a test's calls to the thread that serves, and reads the
// record.
#include "fake_master.hpp"

#include "fake_server.hpp"
#include "run.hpp"

#include <boost/asio/post.hpp>

#include <future>
#include <thread>

namespace redlock::test {

namespace asio = boost::asio;

class fake_master::own_thread {
public:
    own_thread() : guard_(asio::make_work_guard(io_)), thread_([this] { io_.run(); }) {}
    ~own_thread() { join(); }

    asio::io_context& io() noexcept { return io_; }

    void run(const std::function<void()>& task) {
        std::packaged_task<void()> packaged(task);
        std::future<void> done = packaged.get_future();
        asio::post(io_, std::move(packaged));
        done.get();
    }

    void join() {
        guard_.reset();
        if (thread_.joinable()) {
            thread_.join();
        }
    }

private:
    asio::io_context io_{1};
    asio::executor_work_guard<asio::io_context::executor_type> guard_;
    std::thread thread_;
};

fake_master::fake_master(const fake_options& options)
    : thread_(std::make_unique<own_thread>()),
      state_(std::make_shared<fake_state>(options)),
      server_(std::make_shared<fake_server>(thread_->io(), state_)) {
    thread_->run([this] { server_->listen(); });
}

fake_master::fake_master(fake_master&&) noexcept = default;

fake_master::~fake_master() {
    if (thread_) { // else moved from
        thread_->run([this] {
            server_->stop_listening();
            server_->close_connections();
        });
        thread_->join();
    }
    server_.reset(); // its sockets go before their context
}

std::uint16_t fake_master::port() const noexcept {
    return server_->port();
}

std::string fake_master::url() const {
    return "redis://127.0.0.1:" + std::to_string(port());
}

void fake_master::when(const std::string& command, fake_action action, std::size_t times) {
    when(named(command), std::move(action), times);
}

void fake_master::when(command_predicate matches, fake_action action, std::size_t times) {
    state_->add_rule(std::move(matches), std::move(action), times);
}

void fake_master::clear_rules() {
    state_->clear_rules();
}

void fake_master::release_hung() {
    thread_->run([this] { server_->release_hung(); });
}

void fake_master::refuse_connections(bool refuse) {
    thread_->run([this, refuse] { refuse ? server_->stop_listening() : server_->listen(); });
}

void fake_master::drop_connections() {
    thread_->run([this] { server_->close_connections(); });
}

void fake_master::accept_but_say_nothing(bool silent) {
    state_->set_silent(silent);
    if (!silent) {
        release_hung();
    }
}

std::size_t fake_master::connections_accepted() const {
    return state_->look().connections_accepted;
}

void fake_master::set_key(const std::string& key, const std::string& value) {
    state_->command({"SET", key, value});
}

std::optional<std::string> fake_master::get_key(const std::string& key) const {
    const auto all = keys();
    const auto found = all.find(key);
    return found == all.end() ? std::nullopt : std::optional(found->second);
}

std::map<std::string, std::string> fake_master::keys() const {
    const std::int64_t now_ms = fake_state::wall_us() / 1000;
    return state_->with_master([now_ms](const memory::server& master) {
        std::map<std::string, std::string> live;
        for (const memory::entry& one : master.data.entries()) {
            if (now_ms <= one.expires_ms) {
                live.emplace(one.key, one.value);
            }
        }
        return live;
    });
}

void fake_master::flush_keys() {
    state_->command({"FLUSHALL"});
}

fake_master::log fake_master::commands() const {
    return state_->look().commands;
}

fake_master::log fake_master::commands(const std::string& name) const {
    log result = commands();
    const command_predicate matches = named(name);
    std::erase_if(result, [&matches](const auto& command) { return !matches(command); });
    return result;
}

std::size_t fake_master::count(const std::string& name) const {
    return commands(name).size();
}

std::vector<std::size_t> fake_master::commands_per_read() const {
    return state_->look().commands_per_read;
}

std::vector<std::string> fake_master::protocol_errors() const {
    return state_->look().protocol_errors;
}

void fake_master::clear_log() {
    state_->clear_log();
}

void fake_master::wait(
    const std::function<bool(const fake_state::record&)>& holds, std::chrono::seconds limit) {
    if (!state_->wait_for(holds, limit)) {
        const fake_state::record record = state_->look();
        std::string text = "time limit: the fake master waited in vain; connections accepted "
                           + std::to_string(record.connections_accepted) + ", open "
                           + std::to_string(record.connections_open) + "; commands:";
        for (const received_command& command : record.commands) {
            text += " " + command.name();
        }
        throw time_limit_error(text);
    }
}

void fake_master::wait_for(const log_predicate& holds, std::chrono::seconds limit) {
    wait([&](const fake_state::record& record) { return holds(record.commands); }, limit);
}

void fake_master::wait_for_command(
    const std::string& name, std::size_t times, std::chrono::seconds limit) {
    const command_predicate matches = named(name);
    wait(
        [&](const fake_state::record& record) {
            const auto n = std::count_if(record.commands.begin(), record.commands.end(), matches);
            return static_cast<std::size_t>(n) >= times;
        },
        limit);
}

void fake_master::wait_for_open_connections(std::size_t open, std::chrono::seconds limit) {
    wait([=](const fake_state::record& record) { return record.connections_open == open; }, limit);
}

} // namespace redlock::test
