#include "fake_master.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include <atomic>
#include <deque>
#include <future>
#include <sstream>
#include <stdexcept>

namespace redlock::test {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t read_size = 256 * 1024; // what a client writes at once is one read

std::int64_t wall_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::string new_run_id() {
    static std::atomic<unsigned> made{0};
    const std::string number = std::to_string(++made);
    return std::string(40 - number.size(), 'f') + number;
}

} // namespace

struct fake_master::connection {
    struct pending {
        received_command command;
        std::optional<fake_action> action; // when its turn has come
        std::string reply;
    };

    connection(tcp::socket accepted, std::size_t n) : socket(std::move(accepted)), number(n) {}

    // What is still pending is forgotten.
    void close() {
        error_code ignored;
        socket.shutdown(tcp::socket::shutdown_both, ignored);
        socket.close(ignored);
        queue.clear();
    }

    tcp::socket socket;
    std::size_t number;
    bool authenticated = false;
    bool writing = false;
    std::vector<char> buffer = std::vector<char>(read_size);
    std::string input; // an incomplete request
    std::deque<pending> queue;
    std::string out;
};

bool received_command::is(const std::string& words) const {
    // A connection asks with a script without keys whether scripts are allowed.
    const bool tries = args.front() == "EVAL" && args.size() == 3;
    std::istringstream wanted(words);
    std::size_t i = 0;
    for (std::string word; wanted >> word; ++i) {
        if (i == args.size() || args[i] != word) {
            return words == "*";
        }
    }
    return !tries;
}

fake_master::fake_master() : guard_(asio::make_work_guard(io_)), thread_([this] { io_.run(); }) {
    constexpr std::int64_t up_for_us = 100'000'000'000; // longer than any quarantine
    master_.restart(new_run_id(), wall_us() - up_for_us, {});
    refuse_connections(false);
}

fake_master::~fake_master() {
    io_.stop();
    thread_.join();
}

std::string fake_master::url() const {
    return "redis://127.0.0.1:" + std::to_string(port());
}

void fake_master::require(const std::string& password) {
    const std::lock_guard guard(mutex_);
    master_.password = password;
}

void fake_master::when(const std::string& words, fake_action action, std::size_t times) {
    const std::lock_guard guard(mutex_);
    rules_.push_back({words, std::move(action), times});
}

void fake_master::clear_rules() {
    const std::lock_guard guard(mutex_);
    rules_.clear();
}

void fake_master::serve(const std::function<void()>& task) {
    std::packaged_task<void()> packaged([&] {
        const std::lock_guard guard(mutex_);
        task();
    });
    std::future<void> done = packaged.get_future();
    asio::post(io_, std::move(packaged));
    done.get();
}

void fake_master::release_hung() {
    serve([this] {
        for (const connection_ptr& one : connections_) {
            for (connection::pending& next : one->queue) {
                if (next.action && next.action->hangs) {
                    next.reply =
                        next.action->executes ? next.reply : reply_to(*one, next.command.args);
                    next.action = fake_action::obey();
                }
            }
            decide(*one);
            answer(one);
        }
    });
}

void fake_master::refuse_connections(bool refuse) {
    serve([this, refuse] { refuse ? acceptor_.close() : listen(); });
}

void fake_master::drop_connections() {
    serve([this] {
        for (const connection_ptr& one : connections_) {
            one->close();
        }
    });
}

std::size_t fake_master::connections_accepted() const {
    const std::lock_guard guard(mutex_);
    return accepted_;
}

std::size_t fake_master::connections_open() {
    std::size_t open = 0;
    serve([&] {
        for (const connection_ptr& one : connections_) {
            open += one->socket.is_open() ? 1 : 0;
        }
    });
    return open;
}

void fake_master::set_key(const std::string& key, const std::string& value) {
    const std::lock_guard guard(mutex_);
    execute({"SET", key, value});
}

std::map<std::string, std::string> fake_master::keys() const {
    const std::lock_guard guard(mutex_);
    std::map<std::string, std::string> live;
    for (const memory::entry& one : master_.data.entries()) {
        if (wall_us() / 1000 <= one.expires_ms) {
            live.emplace(one.key, one.value);
        }
    }
    return live;
}

void fake_master::flush_keys() {
    const std::lock_guard guard(mutex_);
    execute({"FLUSHALL"});
}

fake_master::log fake_master::commands() const {
    return commands("*");
}

fake_master::log fake_master::commands(const std::string& words) const {
    const std::lock_guard guard(mutex_);
    log found;
    std::ranges::copy_if(
        commands_, std::back_inserter(found), [&](const auto& one) { return one.is(words); });
    return found;
}

std::vector<std::size_t> fake_master::commands_per_read() const {
    const std::lock_guard guard(mutex_);
    return reads_;
}

void fake_master::clear_log() {
    const std::lock_guard guard(mutex_);
    commands_.clear();
    reads_.clear();
}

void fake_master::wait_for_command(const std::string& words, std::size_t times) {
    std::unique_lock guard(mutex_);
    const auto holds = [&] {
        const auto is_one = [&](const received_command& one) { return one.is(words); };
        return std::ranges::count_if(commands_, is_one) >= static_cast<std::ptrdiff_t>(times);
    };
    if (!changed_.wait_for(guard, std::chrono::seconds(10), holds)) {
        std::string text = "time limit: a fake master waited in vain for " + words + "; it got:";
        for (const received_command& command : commands_) {
            text += " " + command.args.front();
        }
        throw std::runtime_error(text);
    }
}

void fake_master::listen() {
    if (!acceptor_.is_open()) {
        const tcp::endpoint endpoint(free_port::loopback(), port());
        acceptor_.open(endpoint.protocol());
        acceptor_.set_option(tcp::acceptor::reuse_address(true));
        acceptor_.bind(endpoint);
        acceptor_.listen();
        accept();
    }
}

void fake_master::accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
        const std::lock_guard guard(mutex_);
        if (error || !acceptor_.is_open()) {
            return;
        }
        socket.set_option(tcp::no_delay(true), error);
        std::erase_if(connections_, [](const connection_ptr& one) {
            return !one->socket.is_open() && one->queue.empty();
        });
        connections_.push_back(std::make_shared<connection>(std::move(socket), accepted_++));
        read(connections_.back());
        accept();
    });
}

void fake_master::read(const connection_ptr& one) {
    one->socket.async_read_some(
        asio::buffer(one->buffer), [this, one](error_code error, std::size_t size) {
            const std::lock_guard guard(mutex_);
            if (error) { // what hangs can still be executed
                one->socket.close(error);
                return;
            }
            take(*one, {one->buffer.data(), size});
            answer(one);
            read(one);
        });
}

void fake_master::take(connection& one, std::string_view bytes) {
    one.input.append(bytes);
    std::size_t at = 0;
    std::vector<std::string_view> words;
    const std::size_t before = commands_.size();
    while (memory::take_command(one.input, at, words)) {
        commands_.push_back({one.number, {words.begin(), words.end()}});
        one.queue.push_back({commands_.back(), {}, {}});
    }
    one.input.erase(0, at);
    reads_.push_back(commands_.size() - before);
    decide(one);
    changed_.notify_all();
}

void fake_master::decide(connection& one) {
    for (connection::pending& next : one.queue) {
        if (!next.action) {
            next.action = choose(next.command);
            next.reply =
                next.action->executes ? reply_to(one, next.command.args) : next.action->raw;
        }
        if (next.action->stops_others()) {
            return;
        }
    }
}

fake_action fake_master::choose(const received_command& command) {
    for (rule& candidate : rules_) {
        if (candidate.times_left > 0 && command.is(candidate.words)) {
            candidate.times_left -= candidate.times_left == for_ever ? 0 : 1;
            return candidate.action;
        }
    }
    return fake_action::obey();
}

std::string fake_master::reply_to(connection& who, const std::vector<std::string>& args) {
    const bool introduces = args.front() == "AUTH";
    const memory::answer said = introduces || who.authenticated || master_.password.empty()
                                    ? execute(args)
                                    : memory::answer::error("NOAUTH Authentication required.");
    who.authenticated = who.authenticated || (introduces && !said.is_error());
    std::string bytes;
    said.encode(bytes);
    return bytes;
}

memory::answer fake_master::execute(const std::vector<std::string>& args) {
    const std::vector<std::string_view> words(args.begin(), args.end());
    return master_.execute(words, wall_us());
}

void fake_master::answer(const connection_ptr& one) {
    if (one->writing || !one->socket.is_open()) {
        return;
    }
    bool closes = false;
    one->out.clear();
    while (!one->queue.empty() && !closes) {
        const connection::pending& next = one->queue.front();
        if (!next.action || next.action->hangs) {
            break;
        }
        one->out += next.reply.substr(0, next.action->sent);
        closes = next.action->closes;
        if (!closes) { // else it stays, and keeps those after it from their turn
            one->queue.pop_front();
        }
    }
    if (one->out.empty() && !closes) {
        return;
    }
    one->writing = true;
    asio::async_write(
        one->socket, asio::buffer(one->out), [this, one, closes](error_code, std::size_t) {
            const std::lock_guard guard(mutex_);
            one->writing = false;
            closes ? one->close() : answer(one);
        });
}

} // namespace redlock::test
