#include "completion.hpp"
#include "settings_of.hpp"

#include <redlock/sharded.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <stdexcept>

namespace redlock::inline REDLOCK_ABI {

namespace asio = boost::asio;

namespace {

constexpr std::size_t quorums_max = 64;
constexpr std::size_t name_max = 64;

std::optional<std::string> wrong_with_names(std::vector<std::string> names, std::string_view what) {
    if (names.empty() || names.size() > quorums_max) {
        return fmt::format("{} {}; allowed: 1 to {}", names.size(), what, quorums_max);
    }
    const auto visible = [](char one) { return one > ' ' && one <= '~'; };
    for (const std::string& name : names) {
        if (name.empty() || name.size() > name_max
            || !std::all_of(name.begin(), name.end(), visible)) {
            return fmt::format(
                "a name of the {} has {} bytes or is not plain; allowed: 1 to {} visible "
                "characters of ASCII",
                what,
                name.size(),
                name_max);
        }
    }
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
        return fmt::format("'{}' is twice among the {}; each name may be given once", *twice, what);
    }
    return std::nullopt;
}

std::optional<std::string> shared_server(const named_quorum& a, const named_quorum& b) {
    for (const endpoint& master : a.config.masters) {
        for (const endpoint& other : b.config.masters) {
            if (detail::same_server(master, other)) {
                return fmt::format(
                    "quorums '{}' and '{}' have one server, '{}', in common; each may be in one",
                    a.name,
                    b.name,
                    to_string(master));
            }
        }
    }
    return std::nullopt;
}

std::vector<std::string> names_of(const std::vector<named_quorum>& quorums) {
    std::vector<std::string> names;
    names.reserve(quorums.size());
    for (const named_quorum& one : quorums) {
        names.push_back(one.name);
    }
    return names;
}

// "quorum 'east': " before each line of its own text.
void add_lines(std::string& out, const std::string& quorum, std::string_view text) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        fmt::format_to(
            std::back_inserter(out),
            "{}quorum '{}': {}",
            out.empty() ? "" : "\n",
            quorum,
            text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

sharded_config checked(sharded_config configuration) {
    std::string reason;
    if (validate(configuration, reason)) {
        throw std::invalid_argument("redlock: " + reason);
    }
    return configuration;
}

} // namespace

error_code validate(const sharded_config& config, std::string& reason) {
    reason.clear();
    const auto refuse = [&](std::string why) {
        reason = std::move(why);
        return errc::invalid_config;
    };
    if (auto why = wrong_with_names(names_of(config.quorums), "quorums")) {
        return refuse(std::move(*why));
    }
    if (!config.hand_over.empty()) {
        if (auto why = wrong_with_names(config.hand_over, "quorums of hand_over")) {
            return refuse(std::move(*why));
        }
    }
    std::string warnings;
    for (const named_quorum& one : config.quorums) {
        std::string text;
        const error_code error = validate(one.config, text);
        add_lines(warnings, one.name, text);
        if (error) {
            return refuse(fmt::format("quorum '{}': {}", one.name, text));
        }
    }
    for (std::size_t i = 0; i < config.quorums.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (auto why = shared_server(config.quorums[j], config.quorums[i])) {
                return refuse(std::move(*why));
            }
        }
    }
    reason = std::move(warnings);
    return {};
}

std::string to_string(const sharded_health& it) {
    std::string out = fmt::format("{} of {} quorums ready", it.ready_quorums, it.quorums.size());
    std::string_view before = ": ";
    for (const quorum_health& one : it.quorums) {
        fmt::format_to(
            std::back_inserter(out), "{}{}: {}", before, one.quorum, to_string(one.health));
        before = "; ";
    }
    return out;
}

namespace detail {

class sharded_impl {
public:
    sharded_impl(const asio::any_io_executor& io, sharded_config configuration)
        : io(io),
          names(names_of(configuration.quorums)),
          others(std::move(configuration.hand_over)) {
        managers.reserve(configuration.quorums.size());
        for (named_quorum& one : configuration.quorums) {
            managers.emplace_back(io, std::move(one.config));
        }
    }

    lock_manager& manager_of(std::string_view resource) noexcept {
        return managers[place(names, resource)];
    }

    bool moving(std::string_view resource) const noexcept {
        return !others.empty() && names[place(names, resource)] != others[place(others, resource)];
    }

    const home io;
    const std::vector<std::string> names;
    const std::vector<std::string> others;
    std::vector<lock_manager> managers; // in the order of the names
};

namespace {

// One operation on every quorum, as one for the caller. The answers come on a strand, where the
// signals are emitted, too.
class on_all : public std::enable_shared_from_this<on_all> {
public:
    using handler = asio::any_completion_handler<void(error_code)>;

    on_all(const home& io, std::size_t quorums, handler done)
        : io_(io),
          strand_(asio::make_strand(io.executor)),
          errors_(quorums),
          steps_(quorums),
          left_(quorums) {
        auto slot = asio::get_associated_cancellation_slot(done);
        done_.emplace(std::move(done), io_);
        if (slot.is_connected()) {
            cancel_ = slot;
        }
    }

    /// `begin(manager, handler)` begins the operation on one quorum, here and now: what the caller
    /// does next finds it begun.
    template <typename Begin>
    void start(std::vector<lock_manager>& managers, Begin begin) {
        if (cancel_.is_connected()) {
            cancel_.assign([weak = weak_from_this()](asio::cancellation_type) {
                if (const auto self = weak.lock()) {
                    self->cancel();
                }
            });
        }
        for (std::size_t i = 0; i < managers.size(); ++i) {
            begin(
                managers[i],
                asio::bind_cancellation_slot(
                    steps_[i].slot(),
                    asio::bind_executor(strand_, [self = shared_from_this(), i](error_code error) {
                        self->ended(i, error);
                    })));
        }
    }

private:
    void cancel() {
        asio::post(strand_, [self = shared_from_this()] {
            for (asio::cancellation_signal& step : self->steps_) {
                step.emit(asio::cancellation_type::terminal);
            }
        });
    }

    void ended(std::size_t quorum, error_code error) {
        errors_[quorum] = error;
        if (--left_ > 0) {
            return;
        }
        const auto first =
            std::find_if(errors_.begin(), errors_.end(), [](const error_code& one) -> bool {
                return one.failed();
            });
        (*std::move(done_))(io_, first == errors_.end() ? error_code() : *first);
    }

    home io_;
    asio::strand<asio::any_io_executor> strand_;
    std::optional<completion<error_code>> done_;
    asio::cancellation_slot cancel_;
    std::vector<error_code> errors_;
    std::deque<asio::cancellation_signal> steps_; // they cannot move
    std::size_t left_;
};

template <typename Begin>
void begin_on_all(sharded_impl& impl, on_all::handler done, Begin begin) {
    std::make_shared<on_all>(impl.io, impl.managers.size(), std::move(done))
        ->start(impl.managers, begin);
}

} // namespace

} // namespace detail

sharded_manager::sharded_manager(executor_type executor, sharded_config configuration)
    : impl_(std::make_shared<detail::sharded_impl>(executor, checked(std::move(configuration)))) {}

sharded_manager::sharded_manager(sharded_manager&&) noexcept = default;

sharded_manager& sharded_manager::operator=(sharded_manager&& other) noexcept {
    if (this != &other) {
        sharded_manager old(std::move(*this));
        impl_ = std::move(other.impl_);
    }
    return *this;
}

sharded_manager::~sharded_manager() {
    if (!impl_) {
        return;
    }
    // An operation that was not begun yet may keep the managers alive: they are closed, not left to
    // their destructors.
    try {
        for (lock_manager& one : impl_->managers) {
            one.async_close([](error_code) {});
        }
    } catch (...) {
        // No memory for the message: the leases end by their ttl.
    }
}

sharded_manager::executor_type sharded_manager::get_executor() const noexcept {
    return impl_->io.executor;
}

std::vector<quorum_metrics> sharded_manager::get_metrics() const {
    std::vector<quorum_metrics> out;
    for (std::size_t i = 0; i < impl_->names.size(); ++i) {
        out.push_back({impl_->names[i], impl_->managers[i].get_metrics()});
    }
    return out;
}

sharded_health sharded_manager::get_health() const {
    sharded_health out;
    for (std::size_t i = 0; i < impl_->names.size(); ++i) {
        out.quorums.push_back({impl_->names[i], impl_->managers[i].get_health()});
        out.ready_quorums += out.quorums.back().health.ready ? 1 : 0;
    }
    out.ready = out.ready_quorums == out.quorums.size();
    return out;
}

const std::vector<std::string>& sharded_manager::quorums() const noexcept {
    return impl_->names;
}

std::string_view sharded_manager::quorum_of(std::string_view resource) const noexcept {
    return impl_->names[place(impl_->names, resource)];
}

lock_manager& sharded_manager::manager_of(std::string_view resource) noexcept {
    return impl_->manager_of(resource);
}

bool sharded_manager::moving(std::string_view resource) const noexcept {
    return impl_->moving(resource);
}

void sharded_manager::start_run(detail::sharded_impl& impl, handler<plain_signature> done) {
    detail::begin_on_all(impl, std::move(done), [](lock_manager& one, auto ended) {
        one.async_run(std::move(ended));
    });
}

void sharded_manager::start_ready(detail::sharded_impl& impl, handler<plain_signature> done) {
    detail::begin_on_all(impl, std::move(done), [](lock_manager& one, auto ended) {
        one.async_ready(std::move(ended));
    });
}

void sharded_manager::start_close(detail::sharded_impl& impl, handler<plain_signature> done) {
    detail::begin_on_all(impl, std::move(done), [](lock_manager& one, auto ended) {
        one.async_close(std::move(ended));
    });
}

void sharded_manager::start_acquire(
    detail::sharded_impl& impl,
    std::string resource,
    acquire_options options,
    diagnostics* out,
    handler<acquire_signature> done) {
    if (impl.moving(resource)) {
        if (out != nullptr) {
            *out = {};
            out->message = make_error_code(errc::moving).message();
        }
        detail::completion<error_code, lock>(std::move(done), impl.io)(
            impl.io, errc::moving, lock());
        return;
    }
    lock_manager& home = impl.manager_of(resource);
    if (out != nullptr) {
        home.async_acquire(std::move(resource), options, *out, std::move(done));
    } else {
        home.async_acquire(std::move(resource), options, std::move(done));
    }
}

} // namespace redlock::inline REDLOCK_ABI
