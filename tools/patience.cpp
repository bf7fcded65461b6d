#include "patience.hpp"

#include "hints.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

namespace cli {

// Ended by closing: a cancellation of a coroutine that has just ended would use what is gone.
struct patience::probe {
    explicit probe(asio::io_context& io) : resolver(io), socket(io) {}
    void stop() {
        boost::system::error_code ignored;
        resolver.cancel();
        socket.close(ignored);
    }
    asio::ip::tcp::resolver resolver;
    asio::ip::tcp::socket socket;
};

namespace {

// A reason that is not known at once is reported after this time, together with the time of
// `session::settle_for` before two seconds have passed.
constexpr milliseconds silence_max{1'300};

// Says so if the server at a rediss:// address replies to a PING without TLS. A TLS handshake with
// such a server may end with `connect_timeout` only. No password is sent.
asio::awaitable<void>
probe_without_tls(std::shared_ptr<patience::probe> mine, redlock::endpoint where) {
    using asio::use_awaitable;
    const std::string port = std::to_string(where.port);
    const auto found = co_await mine->resolver.async_resolve(where.host, port, use_awaitable);
    co_await asio::async_connect(mine->socket, found, use_awaitable);
    constexpr std::string_view ping = "PING\r\n";
    co_await asio::async_write(mine->socket, asio::buffer(ping), use_awaitable);
    std::array<char, 64> reply{};
    const auto size = co_await mine->socket.async_read_some(asio::buffer(reply), use_awaitable);
    if (size > 0 && (reply[0] == '+' || reply[0] == '-')) { // also an error such as NOAUTH
        say_without_tls({to_string(where)});
    }
}

} // namespace

std::optional<milliseconds> quarantine_left(const redlock::health& now) {
    std::vector<milliseconds> all;
    for (const redlock::master_health& one : now.masters) {
        if (one.state == redlock::master_state::admitted) {
            all.emplace_back(0);
        } else if (one.state == redlock::master_state::quarantined) {
            all.push_back(one.quarantine_left.value_or(milliseconds(0)));
        }
    }
    if (now.quorum == 0 || all.size() < now.quorum) {
        return std::nullopt;
    }
    std::ranges::sort(all);
    const milliseconds left = all[now.quorum - 1];
    return left.count() > 0 ? std::optional(left) : std::nullopt;
}

patience::patience(session& now, std::string name, redlock::acquire_options wanted, bool pool)
    : now_(now),
      name_(std::move(name)),
      wanted_(std::move(wanted)),
      pool_(pool),
      self_(std::make_shared<patience*>(this)),
      timer_(now.io) {
    if (wanted_.wait.limit() <= silence_max) {
        return;
    }
    const redlock::health health = now.manager.get_health();
    if (!health.ready && std::ranges::all_of(health.masters, decided)) {
        look();
    } else {
        look_after(silence_max);
    }
}

patience::~patience() {
    for (const auto& one : probes_) {
        one->stop();
    }
    if (counts_down_) {
        fmt::print(stderr, "\r\x1b[K");
    }
}

void patience::look_after(milliseconds time) {
    timer_.expires_after(time);
    // It may be queued already when the object ends.
    timer_.async_wait([this, mine = std::weak_ptr(self_)](const redlock::error_code& error) {
        if (!error && !mine.expired()) {
            look();
        }
    });
}

void patience::look() {
    const redlock::health health = now_.manager.get_health();
    const auto left = health.ready ? std::nullopt : quarantine_left(health);
    if (left) {
        const auto text = fmt::format(
            "waiting for '{}': {} s until the quarantine ends; the masters are new, or were "
            "restarted or emptied, or a longer max_ttl was set{}",
            printable(name_),
            std::chrono::ceil<std::chrono::seconds>(*left).count(),
            told_left_ ? "" : " (redlock members shows them)");
        told_ = true;
        if (::isatty(STDERR_FILENO) == 1) {
            fmt::print(stderr, "\r\x1b[Kredlock: {}", text);
            std::fflush(stderr);
            counts_down_ = true;
        } else if (!std::exchange(told_left_, true)) {
            say(text);
        }
    } else {
        if (std::exchange(counts_down_, false)) {
            fmt::print(stderr, "\r\x1b[K");
        }
        const bool again = std::exchange(told_, true);
        if (!again || learned_more(health)) {
            if (!health.ready) {
                tell_masters(health);
                if (again) {
                    unknown_.clear(); // once
                }
            } else if (pool_) {
                say_waiting("its slots are held, or refused by the masters: " + to_string(health));
            } else {
                tell_lock();
            }
        }
    }
    look_after(std::chrono::seconds(1));
}

// A majority votes: another owner has the lock, or the masters refuse it.
void patience::tell_lock() {
    now_.manager.async_query(
        name_,
        [mine = std::weak_ptr(self_)](
            const redlock::error_code& error, const redlock::lock_status& found) {
            const auto self = mine.lock();
            if (!self) {
                return;
            }
            if (!error && found.state == redlock::lock_state::free) {
                (*self)->tell_refusals();
                return;
            }
            (*self)->say_waiting(to_string(found));
            if (std::ranges::any_of(found.masters, [](const redlock::master_vote& one) {
                    return one.vote == redlock::vote::owned_by_other;
                })) {
                say("another program has a key of this name: `redlock status` shows which one");
            }
        });
}

// The lock is free, and is not granted: an attempt without a wait shows what the masters reply.
void patience::tell_refusals() {
    const auto why = std::make_shared<redlock::diagnostics>();
    wanted_.wait = redlock::wait_for::none();
    now_.manager.async_acquire(
        name_,
        wanted_,
        with_diagnostics(
            *why,
            [why,
             mine = std::weak_ptr(self_)](const redlock::error_code& error, const redlock::lock&) {
                if (const auto self = mine.lock(); self && error) {
                    (*self)->say_waiting(to_string(*why));
                    std::vector<std::string> texts;
                    for (const redlock::master_vote& one : why->votes) {
                        texts.push_back(one.text);
                    }
                    (*self)->hint(texts);
                }
            }));
}

// Whether the cause is now known for each master that was still connecting when they were reported.
bool patience::learned_more(const redlock::health& health) {
    return !health.ready && !unknown_.empty()
           && std::ranges::all_of(unknown_, [&](const auto& one) {
                  return health.masters[one.first].text != one.second;
              });
}

void patience::tell_masters(const redlock::health& health) {
    say_waiting(to_string(health));
    const bool probes = probes_.empty(); // once
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < health.masters.size(); ++i) {
        texts.push_back(health.masters[i].text);
        if (health.masters[i].state == redlock::master_state::connecting) {
            unknown_.emplace_back(i, health.masters[i].text);
        }
        const redlock::endpoint& where = now_.how().masters[i];
        const redlock::master_state state = health.masters[i].state;
        if (probes && where.tls
            && (state == redlock::master_state::connecting
                || state == redlock::master_state::down)) {
            const auto& mine = probes_.emplace_back(std::make_shared<probe>(now_.io));
            asio::co_spawn(
                now_.io, probe_without_tls(mine, where), [](const std::exception_ptr&) {});
        }
    }
    hint(texts);
}

void patience::hint(const std::vector<std::string>& texts) {
    told_causes_ = true;
    hint_at_causes(now_.how(), texts);
}

void patience::say_waiting(std::string_view why) const {
    say(fmt::format("waiting for '{}': {}", printable(name_), printable(why)));
}

} // namespace cli
