#include "connection.hpp"

#include "core/bytes/append_command.hpp"
#include "core/bytes/keys.hpp"
#include "core/masters/admission.hpp"
#include "net/open_socket.hpp"
#include "net/settings_file.hpp"
#include "net/tls.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;
using any_socket = asio::generic::stream_protocol::socket;

constexpr milliseconds answer_max{2'000};

// A broken or hostile server must not exhaust the memory of this machine.
constexpr std::size_t bytes_per_element = 64; // on average, at least
constexpr std::size_t error_length_max = 500; // it is shown to people

// `rest` begins with the elements of `from`, each followed by its own. hiredis bounds the depth.
reply reply_of(const core::reply& from, std::span<const core::reply>& rest) {
    const std::size_t longest = from.is_error() ? error_length_max : from.text.size();
    reply out{from.type, std::string(from.text.substr(0, longest)), from.integer, {}};
    for (std::int64_t i = 0; from.type == core::reply_type::array && i < from.integer; ++i) {
        const core::reply& element = rest.front();
        rest = rest.subspan(1);
        out.items.push_back(reply_of(element, rest));
    }
    return out;
}

} // namespace

class connection::wire {
public:
    wire(const endpoint& where, const config& how) : where_(where), how_(how), socket_(io_) {}

    void open() {
        connect();
        open_ = true;
        if (where_.tls) {
            shake_hands();
        }
        log_in();
    }

    std::optional<std::chrono::hours> certificate_left() {
#if REDLOCK_HAS_TLS
        if (!secure_) {
            return std::nullopt;
        }
        auto* const session = secure_->native_handle();
        const std::unique_ptr<X509, decltype(&X509_free)> certificate(
            SSL_get1_peer_certificate(session), X509_free);
        int days = 0;
        int seconds = 0;
        if (certificate
            && ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate.get()))
                   == 1) {
            return std::chrono::hours(days * 24 + seconds / 3600);
        }
#endif
        return std::nullopt;
    }

    reply
    ask(const std::vector<std::string_view>& words,
        milliseconds limit,
        std::size_t longest = usual_reply_max) {
        std::size_t received = 0;
        std::string out;
        core::append_command(out, words);
        const auto deadline = std::chrono::steady_clock::now() + limit;
        std::string unwritten; // why; what the server said before is read nevertheless
        try {
            with_stream([&](auto& stream) {
                return within(limit, asio::async_write(stream, asio::buffer(out), asio::deferred));
            });
        } catch (const connection_error& error) {
            if (hangs_) {
                throw;
            }
            unwritten = error.what();
            broken_ = false;
        }
        std::size_t size = 0;
        while (true) {
            if (const core::reply* const found = reader_.next()) {
                std::span<const core::reply> rest = found->elements;
                if (rest.size() > longest / bytes_per_element) {
                    throw connection_error(fmt::format(
                        "the reply has more than {} elements", longest / bytes_per_element));
                }
                return reply_of(*found, rest);
            }
            if (!reader_.error().empty()) {
                throw connection_error(
                    core::not_redis_text(reader_.error(), {received_.data(), size}, secret_));
            }
            const auto left =
                std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
            if (left.count() <= 0) { // a slow trickle of bytes is not a reply
                throw connection_error(fmt::format("no reply within {} ms", limit.count()));
            }
            try {
                size = with_stream([&](auto& stream) {
                    return within(
                        left, stream.async_read_some(asio::buffer(received_), asio::deferred));
                });
            } catch (const connection_error&) {
                if (!unwritten.empty()) {
                    throw connection_error(unwritten);
                }
                throw;
            }
            heard_ = true;
            received += size;
            if (received > longest) {
                throw connection_error(
                    fmt::format("the reply is longer than {} KiB", longest / 1024));
            }
            reader_.feed(std::span(received_).first(size));
        }
    }

private:
    // Runs one operation until it ends or times out. Returns its result.
    template <typename Operation>
    auto within(milliseconds limit, Operation operation) {
        if (broken_) {
            throw connection_error("the connection is broken");
        }
        auto result = std::move(operation)(asio::use_future);
        io_.restart();
        io_.run_for(limit);
        try {
            broken_ = hangs_ = result.wait_for(milliseconds(0)) != std::future_status::ready;
            if (hangs_) { // the operation refers to variables of the caller: never run again
                throw connection_error(fmt::format("no reply within {} ms", limit.count()));
            }
            return result.get();
        } catch (const boost::system::system_error& error) {
            broken_ = true;
            throw connection_error(why_failed(error.code()));
        }
    }

    std::string why_failed(const error_code& error) const {
        const bool closed = error == asio::error::eof || error == asio::error::connection_reset;
        std::string out = error.message();
        if (closed && open_ && !heard_ && where_.path.empty() && !where_.tls) {
            out += net::may_need_tls;
        }
        return out.append(net::advice_on_tls(error));
    }

    void connect() {
        if (!where_.path.empty()) {
            connect_to(asio::local::stream_protocol::endpoint(where_.path), how_.connect_timeout);
            return;
        }
        tcp::resolver resolver(io_);
        const auto found = within(
            how_.connect_timeout,
            resolver.async_resolve(where_.host, std::to_string(where_.port), asio::deferred));
        const auto end = std::chrono::steady_clock::now() + how_.connect_timeout;
        for (auto next = found.begin(); next != found.end();) {
            const tcp::endpoint address = *next++;
            const auto left =
                std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
            try {
                connect_to(address, std::max(left, milliseconds(0)));
                return;
            } catch (const connection_error&) {
                if (next == found.end() || std::chrono::steady_clock::now() >= end) {
                    throw;
                }
                broken_ = false;
            }
        }
    }

    void connect_to(const any_socket::endpoint_type& address, milliseconds limit) {
        boost::system::error_code error; // of no interest: there may be no socket to close
        socket_.close(error);
        net::open_socket(socket_, address.protocol(), error);
        if (error) {
            throw connection_error(error.message());
        }
        within(limit, socket_.async_connect(address, asio::deferred));
    }

#if REDLOCK_HAS_TLS
    void shake_hands() {
        try {
            secure_.emplace(socket_, *net::tls_files(how_.tls).read());
        } catch (const net::unusable_file& bad) {
            throw connection_error(bad.reason());
        }
        const std::string& name = net::tls_name_of(where_, how_.tls);
        net::expect_server(*secure_, name);
        try {
            within(
                how_.connect_timeout,
                secure_->async_handshake(asio::ssl::stream_base::client, asio::deferred));
        } catch (const connection_error& error) {
            throw connection_error(fmt::format(
                "TLS handshake: {}{}",
                error.what(),
                net::why_distrusted(secure_->native_handle(), name)));
        }
    }
#else
    void shake_hands() {
        throw connection_error("this library was built without TLS");
    }
#endif

    template <typename F>
    std::size_t with_stream(F use) {
#if REDLOCK_HAS_TLS
        if (secure_) {
            return use(*secure_);
        }
#endif
        return use(socket_);
    }

    void log_in() {
        const std::string& user = where_.password.empty() ? how_.username : where_.username;
        secret_ = where_.password.empty() ? how_.password : where_.password;
        if (where_.password.empty() && !how_.password_file.empty()) {
            try {
                secret_ = net::password_of_file(how_.password_file);
            } catch (const net::unusable_file& bad) {
                throw connection_error(bad.reason());
            }
        }
        if (!secret_.empty()) {
            const reply answer = user.empty() ? ask({"AUTH", secret_}, how_.connect_timeout)
                                              : ask({"AUTH", user, secret_}, how_.connect_timeout);
            if (answer.failed()) {
                throw connection_error(core::refusal_of("AUTH", answer.text, secret_));
            }
        }
        if (where_.database != 0) {
            const reply answer =
                ask({"SELECT", std::to_string(where_.database)}, how_.connect_timeout);
            if (answer.failed()) {
                throw connection_error(answer.text);
            }
        }
    }

    endpoint where_;
    config how_;
    std::string secret_; // the password that was sent
    bool broken_ = false;
    bool hangs_ = false; // an operation has not ended
    bool open_ = false;
    bool heard_ = false; // the server has sent anything
    asio::io_context io_;
    any_socket socket_;
#if REDLOCK_HAS_TLS
    std::optional<asio::ssl::stream<any_socket&>> secure_;
#endif
    core::reply_reader reader_{scan_reply_max};
    std::array<char, 16'384> received_{}; // the reader may refer to it
};

connection::connection(const endpoint& master, const config& quorum)
    : wire_(std::make_unique<wire>(master, quorum)) {
    wire_->open();
}

connection::~connection() = default;

reply connection::ask(const std::vector<std::string_view>& words, std::size_t longest) {
    // People look at this output, and a busy server that replies is better than a silent one.
    return wire_->ask(words, answer_max, longest);
}

std::optional<std::chrono::hours> connection::certificate_left() {
    return wire_->certificate_left();
}

lock_keys keys_of(const config& quorum, std::string_view resource) {
    const std::string& prefix = quorum.key_prefix;
    lock_keys out;
    core::assign_lock_key(out.lock, prefix, resource);
    core::assign_fence_key(out.fence, prefix, resource);
    out.readers = core::key_beside(out.fence, "readers");
    out.intent = core::key_beside(out.fence, "intent");
    core::assign_queue_key(out.queue, prefix, resource);
    core::assign_tickets_key(out.queue_until, out.queue);
    core::assign_channel(out.channel, out.lock);
    out.record = core::record_key(prefix);
    return out;
}

}}} // namespace redlock::REDLOCK_ABI::detail
