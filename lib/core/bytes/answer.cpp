#include "answer.hpp"

#include "core/base/decisions.hpp"

#include <algorithm>

namespace redlock::core {

namespace {

// {status, value, clock}: the reply of the guarded scripts for one lock, and of a shared call that
// was not executed. The scripts of the fair queue have the rank in place of the clock.
struct triple {
    std::int64_t status = 0;
    std::int64_t value = 0;
    std::int64_t server_us = 0;
};

std::optional<triple> read_triple(const reply& got) noexcept {
    if (!got.is_array(3) || !std::ranges::all_of(got.elements, &reply::is_integer)) {
        return std::nullopt;
    }
    return triple{
        got.elements[0].integer,
        got.elements[1].integer,
        std::clamp<std::int64_t>(got.elements[2].integer, 0, exact_max)};
}

std::chrono::microseconds rest_of(std::int64_t us) noexcept {
    // Longer than any quarantine is an invalid reply; it must not overflow in an addition.
    constexpr std::int64_t most = std::chrono::microseconds(std::chrono::years(1)).count();
    return std::chrono::microseconds(std::clamp<std::int64_t>(us, 0, most));
}

// The result of a comparison with the owner of the key.
vote compared(std::int64_t status) noexcept {
    return status == 1    ? vote::granted
           : status == 0  ? vote::owned_by_other
           : status == -1 ? vote::absent
                          : vote::error;
}

answer read_error(std::string_view error, command_variant how) noexcept {
    // A key of another type with the lock's name belongs to another owner.
    if (error.find("WRONGTYPE") != std::string_view::npos) {
        return {.said = vote::owned_by_other};
    }
    return {
        .use_eval = how != command_variant::eval
                    && (error.starts_with("NOSCRIPT") || refuses_command(error))};
}

answer of_set(const reply& got) noexcept {
    return {
        .said = got.is_ok()                   ? vote::granted
                : got.type != reply_type::nil ? vote::error
                : wrong::busy_counted         ? vote::granted
                                              : vote::held};
}

answer of_acquire(const triple& said) noexcept {
    const auto [status, value, server_us] = said;
    const bool granted = status == 1 && value >= 0 && value < exact_max;
    const bool quarantined = status == -2 || status == -4;
    const auto rest = quarantined ? rest_of(value) : std::chrono::microseconds(0);
    return {
        .said = granted        ? vote::granted
                : status == 0  ? (wrong::busy_counted ? vote::granted : vote::held)
                : status == -1 ? vote::timed_out
                : quarantined  ? vote::quarantined
                               : vote::error,
        .late = status == -1,
        .forgot = status == -4,
        .left = status == 0 ? lease_left(value) : std::nullopt,
        .quarantine = rest,
        .counter = granted ? static_cast<std::uint64_t>(value) : 0,
        .quarantine_ends_us = quarantined ? server_us + rest.count() : 0,
        .server_us = server_us};
}

answer of_raise(const triple& said) noexcept {
    if (said.value < 0 || said.value > exact_max || said.status < 0 || said.status > 1) {
        return {};
    }
    return {
        .said = said.status == 1  ? vote::granted
                : said.value == 0 ? vote::owned_by_other
                                  : vote::held,
        .counter = static_cast<std::uint64_t>(said.value)};
}

answer of_extend(const triple& said) noexcept {
    const auto [status, value, server_us] = said;
    const bool extended = status == 1 || status == 2;
    return {
        .said = extended                       ? vote::granted
                : status == 0                  ? vote::owned_by_other
                : status == -1                 ? vote::timed_out
                : status == -2 || status == -3 ? vote::absent
                                               : vote::error,
        .late = status == -1,
        .healed = status == 2,
        .forgot = status == -2 || status == -4, // -4: nothing was executed; its earlier vote stays
        .unpublished = extended && value == 1,
        .left = status == 0 ? lease_left(value) : std::nullopt,
        .server_us = server_us};
}

// The third number is the rank.
answer of_ticket(const triple& said) noexcept {
    if (said.status < 0 || said.status > 1) {
        return {};
    }
    return {
        .said = said.status == 1 ? vote::granted : vote::held,
        .left = lease_left(said.value),
        .counter = static_cast<std::uint64_t>(said.server_us)};
}

} // namespace

std::optional<std::chrono::milliseconds> lease_left(std::int64_t pttl) noexcept {
    if (pttl < 0) {
        return std::nullopt;
    }
    return std::chrono::ceil<std::chrono::milliseconds>(
        rest_of(std::min<std::int64_t>(pttl, 1'000'000'000'000) * 1000));
}

answer read_answer(command_kind kind, const reply& got, command_variant how) noexcept {
    if (kind == command_kind::acquire && how == command_variant::native) {
        return of_set(got);
    }
    if (got.is_error()) {
        return read_error(got.text, how);
    }
    const std::optional<triple> said = read_triple(got);
    if (!said) {
        return {};
    }
    switch (kind) {
    case command_kind::acquire:
        return of_acquire(*said);
    case command_kind::raise:
        return of_raise(*said);
    case command_kind::remove:
        return {
            .said = compared(said->status),
            .unpublished = said->value == 1,
            .server_us = said->server_us};
    case command_kind::take_ticket:
    case command_kind::leave_queue:
        return of_ticket(*said);
    default: // extend, heal
        return of_extend(*said);
    }
}

std::optional<std::chrono::milliseconds> read_lease_left(const reply& got) noexcept {
    return got.is_integer() ? lease_left(got.integer == -2 ? 0 : got.integer) : std::nullopt;
}

std::optional<memory> read_handshake(const reply& got) noexcept {
    const bool has_record = got.is_array(4) && got.elements[3].type == reply_type::string;
    reply times = got;
    times.elements = times.elements.first(std::min<std::size_t>(times.elements.size(), 3));
    const auto said = read_triple(times);
    if (!said || has_record == (said->status < 0) || (!has_record && got.elements.size() != 3)) {
        return std::nullopt;
    }
    // The server's conversion of a sum that does not fit into 64 bits is negative.
    const std::int64_t ends_us = said->value < 0 ? exact_max : std::min(said->value, exact_max);
    return memory{
        rest_of(ends_us - said->server_us),
        said->server_us,
        ends_us,
        said->status >= 0,
        said->status == 2,
        has_record ? got.elements[3].text : std::string_view()};
}

std::optional<std::int64_t> read_time(const reply& got) noexcept {
    if (!got.is_array(2)) {
        return std::nullopt;
    }
    std::int64_t parts[2] = {};
    for (std::size_t i = 0; i < 2; ++i) {
        if (!parse_number(got.elements[i].text, parts[i]) || parts[i] < 0
            || parts[i] > exact_max / 1'000'000) {
            return std::nullopt;
        }
    }
    return parts[0] * 1'000'000 + parts[1];
}

bool refuses_command(std::string_view error) noexcept {
    return error.starts_with("NOPERM") || error.starts_with("ERR unknown");
}

// Before Redis 7, the error of a command in a script is wrapped.
bool means_ineligible(std::string_view error) noexcept {
    return error.starts_with("READONLY") || error.find(" -READONLY ") != std::string_view::npos
           || error.starts_with("LOADING") || error.starts_with("NOAUTH")
           || error.starts_with("MASTERDOWN");
}

frame_answers::frame_answers(
    const reply& got,
    command_kind kind,
    command_variant how,
    bool has_counters,
    std::size_t locks) noexcept
    : kind_(kind),
      has_counters_(kind == command_kind::acquire && has_counters) {
    if (got.is_error()) {
        // A key of another type concerns its own lock, never the call.
        call_ = read_error(got.text, how);
        call_.said = vote::error;
        call_.for_one = locks > 1 && !got.text.starts_with("NOSCRIPT");
        call_.use_eval |= call_.for_one && refuses_command(got.text);
        error_ = got.text;
        return;
    }
    if (got.type != reply_type::array || got.elements.size() < 2 || !got.elements[0].is_integer()
        || !got.elements[1].is_integer()) {
        return;
    }
    forgot_ = kind == command_kind::extend && got.elements[0].integer == 2;
    if (got.elements[0].integer != 1 && !forgot_) {
        call_ = kind == command_kind::remove ? answer{} : read_answer(kind, got, how);
        const bool another_record = call_.forgot && call_.said == vote::error;
        if (!call_.late && !another_record && call_.said != vote::quarantined) {
            call_ = {};
        }
        return;
    }
    rest_ = got.elements.subspan(2);
    executed_ = well_formed(locks);
    call_.server_us = std::clamp<std::int64_t>(got.elements[1].integer, 0, exact_max);
}

// The reply has a value for each lock, or exceptions with ascending numbers. A nested array is
// invalid: its elements would be taken for those of the reply.
bool frame_answers::well_formed(std::size_t locks) const noexcept {
    if (std::ranges::any_of(
            rest_, [](const reply& one) { return one.type == reply_type::array; })) {
        return false;
    }
    if (has_counters_) {
        return rest_.size() == locks;
    }
    std::int64_t before = 0;
    for (std::size_t i = 0; i < rest_.size(); i += 2) {
        const reply& lock = rest_[i];
        if (!lock.is_integer() || lock.integer <= before
            || lock.integer > static_cast<std::int64_t>(locks) || i + 1 == rest_.size()) {
            return false;
        }
        before = lock.integer;
    }
    return true;
}

answer frame_answers::next() noexcept {
    if (!executed_) {
        return call_;
    }
    error_ = {};
    ++lock_;
    if (has_counters_) {
        return decode(rest_[static_cast<std::size_t>(lock_ - 1)]);
    }
    if (wrong::exceptions_ignored || rest_.empty() || rest_.front().integer != lock_) {
        return {.said = vote::granted};
    }
    const reply& status = rest_[1];
    rest_ = rest_.subspan(2);
    return decode(status);
}

answer frame_answers::decode(const reply& one) noexcept {
    if (!one.is_integer()) {
        error_ = one.text;
        // The error of the command for this lock. The rest of the call was executed nevertheless.
        return read_error(one.text, command_variant::eval);
    }
    const std::int64_t status = one.integer;
    switch (kind_) {
    case command_kind::acquire:
        if (has_counters_ && status >= 0) {
            return status < exact_max
                       ? answer{.said = vote::granted, .counter = static_cast<std::uint64_t>(status)}
                       : answer{};
        }
        return {
            .said = wrong::busy_counted ? vote::granted : vote::held,
            .left = lease_left(has_counters_ ? -2 - status : status)};
    case command_kind::remove:
        return {
            .said = status == 0                  ? vote::owned_by_other
                    : status == -1               ? vote::absent
                    : status == -2 || status > 1 ? vote::granted
                                                 : vote::error,
            .unpublished = status == -2,
            .counter = status > 1 ? static_cast<std::uint64_t>(status - 1) : 0};
    default:
        if (status == -2 || status == -3) {
            return {.said = vote::absent, .forgot = status == -2};
        }
        return status >= -1 ? answer{.said = vote::owned_by_other, .left = lease_left(status)}
                            : answer{};
    }
}

} // namespace redlock::core
