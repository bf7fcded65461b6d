#include "connection.hpp"

#include "core/bytes/append_command.hpp"
#include "core/bytes/keys.hpp"
#include "core/masters/admission.hpp"
#include "net/settings_file.hpp"
#include "net/socket.hpp"

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {
namespace {

using std::chrono::milliseconds;

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

// Drives one socket from the thread that asks, so there is nothing to guard.
class connection::wire final : public net::socket_callbacks {
public:
    wire(boost::asio::io_context& io, const endpoint& where, const config& how)
        : io_(io),
          where_(where),
          how_(how),
          tls_(how.tls),
          socket_(io.get_executor(), 0, where, tls_, net::tls_name_of(where, how.tls), *this) {}

    void open() {
#if !REDLOCK_HAS_TLS
        if (where_.tls) {
            throw connection_error("this library was built without TLS");
        }
#endif
        socket_.open();
        wait(how_.connect_timeout, [this] { return open_; });
        log_in();
    }

    std::optional<std::chrono::hours> certificate_left() {
        return socket_.certificate_left();
    }

    reply
    ask(const std::vector<std::string_view>& words,
        milliseconds limit,
        std::size_t longest = usual_reply_max) {
        std::string out;
        core::append_command(out, words);
        longest_ = longest;
        received_ = 0;
        socket_.write(out);
        wait(limit, [this] { return reply_.has_value(); });
        return *std::exchange(reply_, std::nullopt);
    }

private:
    // net::socket_callbacks
    void socket_opened(std::size_t) override {
        open_ = true;
    }
    void socket_closed(std::size_t, std::string_view why) override {
        fail(why);
    }
    void socket_received(std::size_t, std::span<const char> bytes) override {
        received_ += bytes.size();
        if (received_ > longest_) {
            fail(fmt::format("the reply is longer than {} KiB", longest_ / 1024));
            return;
        }
        reader_.feed(bytes);
        while (const core::reply* const found = reader_.next()) {
            std::span<const core::reply> rest = found->elements;
            if (const std::size_t most = longest_ / bytes_per_element; rest.size() > most) {
                fail(fmt::format("the reply has more than {} elements", most));
                return;
            }
            if (!reply_) {
                reply_ = reply_of(*found, rest);
            }
        }
        if (!reader_.error().empty()) {
            fail(core::not_redis_text(reader_.error(), {bytes.data(), bytes.size()}, secret_));
        }
    }
    void all_received() override {}
    void socket_written(std::size_t, std::size_t) override {}
    void time_came() override {}

    void fail(std::string_view why) {
        socket_.finish();
        lost_ = why;
    }

    // Runs the socket until `over` is true, the connection is lost, or the limit has passed.
    template <typename Over>
    void wait(milliseconds limit, Over over) {
        const auto deadline = std::chrono::steady_clock::now() + limit;
        while (lost_.empty() && !over()) {
            io_.restart();
            if (io_.run_one_until(deadline) == 0) { // a slow trickle of bytes is not a reply
                fail(fmt::format("no reply within {} ms", limit.count()));
            }
        }
        if (!lost_.empty()) {
            throw connection_error(lost_);
        }
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
        const auto send = [this](const std::vector<std::string_view>& words) {
            const reply answer = ask(words, how_.connect_timeout);
            if (answer.failed()) {
                throw refused_error(core::refusal_of(words[0], answer.text, secret_));
            }
        };
        if (!secret_.empty()) {
            user.empty() ? send({"AUTH", secret_}) : send({"AUTH", user, secret_});
        }
        if (where_.database != 0) {
            send({"SELECT", std::to_string(where_.database)});
        }
    }

    boost::asio::io_context& io_;
    const endpoint where_;
    const config how_;
    std::string secret_; // the password that was sent
    bool open_ = false;
    std::string lost_; // why the connection is of no use any more
    std::size_t longest_ = usual_reply_max;
    std::size_t received_ = 0; // since the last command
    std::optional<reply> reply_;
    core::reply_reader reader_{scan_reply_max};
    net::tls_files tls_;
    net::socket socket_;
};

connection::connection(const endpoint& master, const config& quorum)
    : io_(std::make_unique<boost::asio::io_context>()),
      wire_(std::make_shared<wire>(*io_, master, quorum)) {
    wire_->open();
}

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
