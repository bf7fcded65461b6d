// No braces, captures or strings in a statement with co_await: g++ 12 destroys those twice.
#include "fake_server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <stdexcept>

namespace redlock::test {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {
constexpr std::size_t read_size = 256 * 1024; // what a client writes at once is one read
constexpr std::size_t large_chunk = 64 * 1024;
constexpr auto never = asio::steady_timer::time_point::max();
} // namespace

class fake_connection : public std::enable_shared_from_this<fake_connection> {
public:
    fake_connection(tcp::socket socket, std::shared_ptr<fake_state> state)
        : socket_(std::move(socket)),
          arrival_(socket_.get_executor(), never),
          release_(socket_.get_executor(), never),
          pause_(socket_.get_executor()),
          state_(std::move(state)),
          number_(state_->note_connected()) {
        error_code ignored;
        socket_.set_option(tcp::no_delay(true), ignored);
    }

    void start() {
        asio::co_spawn(socket_.get_executor(), read_all(shared_from_this()), asio::detached);
        asio::co_spawn(socket_.get_executor(), answer_all(shared_from_this()), asio::detached);
    }

    void release_hung() {
        if (!closed_) {
            state_->release(session_, pending_);
            release_.cancel();
        }
    }

    // What is still pending is forgotten.
    void close() {
        if (std::exchange(closed_, true)) {
            return;
        }
        error_code ignored;
        socket_.shutdown(tcp::socket::shutdown_both, ignored);
        socket_.close(ignored);
        arrival_.cancel();
        release_.cancel();
        pause_.cancel();
        note_gone();
    }

private:
    using self_ptr = std::shared_ptr<fake_connection>;

    // Once, when either side has closed.
    void note_gone() {
        if (!std::exchange(gone_, true)) {
            state_->note_closed();
        }
    }

    asio::awaitable<void> read_all(self_ptr) {
        std::vector<char> buffer(read_size);
        error_code ec;
        while (!closed_) {
            const std::size_t n = co_await socket_.async_read_some(
                asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, ec));
            if (ec || !take(std::string_view(buffer.data(), n))) {
                break;
            }
            arrival_.cancel();
        }
        // What has arrived is executed even if the client is gone, as a real server does.
        note_gone();
        arrival_.cancel();
    }

    bool take(std::string_view bytes) {
        std::vector<std::vector<std::string>> requests;
        std::string failure;
        std::size_t at = 0;
        std::vector<std::string_view> words;
        try {
            input_.append(bytes);
            while (memory::take_command(input_, at, words)) {
                requests.emplace_back(words.begin(), words.end());
            }
        } catch (const std::runtime_error& error) {
            failure = error.what();
        }
        input_.erase(0, at);
        const bool stopped =
            !pending_.empty()
            && (!pending_.back().decided || pending_.back().decided->stops_others());
        for (auto& one : state_->note_read(session_, number_, std::move(requests), stopped)) {
            pending_.push_back(std::move(one));
        }
        if (!failure.empty()) {
            state_->note_protocol_error(failure);
        }
        return failure.empty();
    }

    asio::awaitable<void> answer_all(self_ptr) {
        while (!closed_) {
            if (pending_.empty()) {
                co_await flush();
                if (!pending_.empty() || closed_) {
                    continue; // it came during the write
                }
                if (gone_) {
                    break;
                }
                error_code woken;
                co_await arrival_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
                continue;
            }
            co_await answer(pending_.front()); // stays in place: others may be added after it
            pending_.pop_front();
        }
        close();
    }

    asio::awaitable<void> answer(const fake_state::pending& one) {
        using kind = fake_action::kind;
        while (one.decided->held && !closed_) {
            co_await flush();
            error_code woken;
            if (one.decided->held) {
                co_await release_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
            }
        }
        const fake_state::turn& turn = *one.decided;
        switch (turn.action.what()) {
        case kind::split_bytes:
            co_await flush();
            co_await write_bytewise(turn.reply);
            break;
        case kind::too_large:
            co_await flush();
            co_await write_large(turn.action.size());
            break;
        case kind::close_before_reply:
        case kind::execute_then_close:
            co_await flush();
            close();
            break;
        case kind::close_mid_reply:
            out_ += turn.reply.substr(0, turn.action.size());
            co_await flush();
            close();
            break;
        default:
            out_ += turn.reply;
            break;
        }
    }

    // Errors of writing show as a failed read.
    asio::awaitable<void> flush() {
        if (!out_.empty()) {
            const std::string bytes = std::exchange(out_, std::string());
            error_code ignored;
            co_await asio::async_write(
                socket_, asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, ignored));
        }
    }

    // The pauses let the peer see each byte on its own.
    asio::awaitable<void> write_bytewise(const std::string& bytes) {
        for (std::size_t i = 0; i < bytes.size() && !closed_; ++i) {
            out_ = bytes[i];
            co_await flush();
            error_code ended;
            pause_.expires_after(std::chrono::microseconds(20));
            co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ended));
        }
    }

    asio::awaitable<void> write_large(std::size_t size) {
        out_ = "$" + std::to_string(size) + "\r\n";
        co_await flush();
        for (std::size_t left = size; left > 0 && !closed_ && !gone_;) {
            const std::size_t chunk = std::min(left, large_chunk);
            out_.assign(chunk, 'x');
            left -= chunk;
            co_await flush();
        }
        out_ = "\r\n";
    }

    tcp::socket socket_;
    asio::steady_timer arrival_; // never expires: cancelled when there is something to answer
    asio::steady_timer release_; // never expires: cancelled when what was held may be answered
    asio::steady_timer pause_;
    std::shared_ptr<fake_state> state_;
    std::size_t number_;
    fake_state::session session_;
    std::string input_;                       // an incomplete request
    std::deque<fake_state::pending> pending_; // the first is being answered
    std::string out_;
    bool closed_ = false; // by us
    bool gone_ = false;   // by either side
};

fake_server::fake_server(asio::io_context& io, std::shared_ptr<fake_state> state)
    : acceptor_(io),
      state_(std::move(state)) {}

void fake_server::listen() {
    if (!acceptor_.is_open()) {
        const tcp::endpoint endpoint(free_port::loopback(), port());
        acceptor_.open(endpoint.protocol());
        acceptor_.set_option(tcp::acceptor::reuse_address(true));
        acceptor_.bind(endpoint);
        acceptor_.listen();
        asio::co_spawn(acceptor_.get_executor(), accept_all(shared_from_this()), asio::detached);
    }
}

void fake_server::stop_listening() {
    error_code ignored;
    acceptor_.close(ignored);
}

void fake_server::close_connections() {
    for (const std::shared_ptr<fake_connection>& one : connections()) {
        one->close();
    }
}

void fake_server::release_hung() {
    for (const std::shared_ptr<fake_connection>& one : connections()) {
        one->release_hung();
    }
}

asio::awaitable<void> fake_server::accept_all(std::shared_ptr<fake_server>) {
    for (;;) {
        error_code ec;
        tcp::socket socket =
            co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, ec));
        if (ec == asio::error::operation_aborted || !acceptor_.is_open()) {
            co_return;
        }
        if (!ec) {
            const auto accepted = std::make_shared<fake_connection>(std::move(socket), state_);
            std::erase_if(connections_, [](const auto& one) { return one.expired(); });
            connections_.push_back(accepted);
            accepted->start();
        }
    }
}

std::vector<std::shared_ptr<fake_connection>> fake_server::connections() const {
    std::vector<std::shared_ptr<fake_connection>> alive;
    for (const std::weak_ptr<fake_connection>& one : connections_) {
        if (auto locked = one.lock()) {
            alive.push_back(std::move(locked));
        }
    }
    return alive;
}

} // namespace redlock::test
