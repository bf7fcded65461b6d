#include "answer.hpp"

#include "decisions.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

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
    if (got.type != reply_type::array || got.elements.size() != 3) {
        return std::nullopt;
    }
    for (const reply& one : got.elements) {
        if (one.type != reply_type::integer) {
            return std::nullopt;
        }
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

// Reply to a compare-and-delete or compare-and-extend of the plain protocol.
answer read_compared(const reply& got, command_variant how) noexcept {
    if (how == command_variant::native) {
        const bool done =
            got.type == reply_type::status || (got.type == reply_type::integer && got.integer == 1);
        return done ? answer{.said = vote::granted} : answer{.ask_exists = true};
    }
    if (got.type != reply_type::integer) {
        return {};
    }
    switch (got.integer) {
    case 1:
        return {.said = vote::granted};
    case 0:
        return {.said = vote::owned_by_other};
    case -1:
        return {.said = vote::absent};
    default:
        return {};
    }
}

} // namespace

answer read_error(std::string_view error, command_variant how) noexcept {
    // A key of another type with the lock's name belongs to another owner.
    if (error.find("WRONGTYPE") != std::string_view::npos) {
        return {.said = vote::owned_by_other};
    }
    return {
        .use_eval = how != command_variant::eval
                    && (error.starts_with("NOSCRIPT") || refuses_command(error))};
}

std::optional<std::chrono::milliseconds> lease_left(std::int64_t pttl) noexcept {
    if (pttl < 0) {
        return std::nullopt;
    }
    return std::chrono::ceil<std::chrono::milliseconds>(
        rest_of(std::min<std::int64_t>(pttl, 1'000'000'000'000) * 1000));
}

answer read_acquire(const reply& got, command_variant how) noexcept {
    if (got.is_error()) {
        return how == command_variant::native ? answer{} : read_error(got.text, how);
    }
    if (how == command_variant::native) { // SET
        if (got.is_ok()) {
            return {.said = vote::granted};
        }
        return {
            .said = got.type == reply_type::nil ? (wrong::busy_counted ? vote::granted : vote::held)
                                                : vote::error};
    }
    const auto said = read_triple(got);
    if (!said) {
        return {};
    }
    answer out{.server_us = said->server_us};
    switch (said->status) {
    case 1:
        if (said->value >= 0 && said->value < exact_max) {
            out.said = vote::granted;
            out.counter = static_cast<std::uint64_t>(said->value);
        }
        break;
    case 0:
        out.said = wrong::busy_counted ? vote::granted : vote::held;
        out.left = lease_left(said->value);
        break;
    case -1:
        out.said = vote::timed_out;
        out.late = true;
        break;
    case -2:
    case -4:
        out.said = vote::quarantined;
        out.forgot = said->status == -4;
        out.quarantine = rest_of(said->value);
        out.quarantine_ends_us = said->server_us + out.quarantine.count();
        break;
    default:
        break;
    }
    return out;
}

answer read_raise(const reply& got, command_variant how) noexcept {
    if (got.is_error()) {
        return read_error(got.text, how);
    }
    const auto said = read_triple(got);
    if (!said || said->value < 0 || said->value > exact_max || said->status < 0
        || said->status > 1) {
        return {};
    }
    return {
        .said = said->status == 1  ? vote::granted
                : said->value == 0 ? vote::owned_by_other
                                   : vote::held,
        .counter = static_cast<std::uint64_t>(said->value)};
}

answer read_remove(const reply& got, command_variant how) noexcept {
    if (got.is_error()) {
        return read_error(got.text, how);
    }
    const auto said = read_triple(got);
    if (!said && how != command_variant::native && got.type == reply_type::integer
        && got.integer >= 2) {
        return {
            .said = vote::granted,
            .unpublished = got.integer == 2,
            .counter = static_cast<std::uint64_t>(got.integer - 2)};
    }
    if (!said) {
        return read_compared(got, how);
    }
    return {
        .said = said->status == 1    ? vote::granted
                : said->status == 0  ? vote::owned_by_other
                : said->status == -1 ? vote::absent
                                     : vote::error,
        .unpublished = said->value == 1,
        .server_us = said->server_us};
}

answer read_extend(const reply& got, command_variant how) noexcept {
    if (got.is_error()) {
        return read_error(got.text, how);
    }
    const auto said = read_triple(got);
    if (!said) {
        return read_compared(got, how);
    }
    answer out{.server_us = said->server_us};
    switch (said->status) {
    case 1:
    case 2:
        out.said = vote::granted;
        out.healed = said->status == 2;
        out.unpublished = said->value == 1;
        break;
    case 0:
        out.said = vote::owned_by_other;
        out.left = lease_left(said->value);
        break;
    case -1:
        out.said = vote::timed_out;
        out.late = true;
        break;
    case -2:
        out.said = vote::absent;
        out.forgot = true;
        break;
    case -3:
        out.said = vote::absent;
        break;
    case -4: // nothing was executed; its earlier vote stays
        out.forgot = true;
        break;
    default:
        break;
    }
    return out;
}

answer read_turn(const reply& got, command_variant how) noexcept {
    if (got.is_error()) {
        return read_error(got.text, how);
    }
    const auto said = read_triple(got);
    if (!said || said->status < 0 || said->status > 1) {
        return {};
    }
    return {
        .said = said->status == 1 ? vote::granted : vote::held,
        .left = lease_left(said->value),
        .counter = static_cast<std::uint64_t>(said->server_us)};
}

std::optional<std::chrono::milliseconds> read_lease_left(const reply& got) noexcept {
    if (got.type != reply_type::integer) {
        return std::nullopt;
    }
    return lease_left(got.integer == -2 ? 0 : got.integer);
}

vote vote_on_exists(const reply& got) noexcept {
    if (got.type != reply_type::integer) {
        return vote::error;
    }
    return got.integer == 0 ? vote::absent : vote::owned_by_other;
}

std::optional<memory> read_handshake(const reply& got) noexcept {
    const bool has_record = got.type == reply_type::array && got.elements.size() == 4
                            && got.elements[3].type == reply_type::string;
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
        has_record ? got.elements[3].text : std::string_view()};
}

std::optional<std::int64_t> read_time(const reply& got) noexcept {
    if (got.type != reply_type::array || got.elements.size() != 2) {
        return std::nullopt;
    }
    std::int64_t parts[2] = {};
    for (std::size_t i = 0; i < 2; ++i) {
        const std::string_view text = got.elements[i].text;
        const auto [end, failed] =
            std::from_chars(text.data(), text.data() + text.size(), parts[i]);
        if (failed != std::errc() || end != text.data() + text.size() || parts[i] < 0
            || parts[i] > exact_max / 1'000'000) {
            return std::nullopt;
        }
    }
    return parts[0] * 1'000'000 + parts[1];
}

// "ERR unknown command", "ERR syntax error" (an older SET without IFEQ), "NOPERM ...".
bool refuses_command(std::string_view error) noexcept {
    return error.starts_with("NOPERM") || error.starts_with("ERR unknown")
           || error.starts_with("ERR syntax");
}

// Before Redis 7, the error of a command in a script is wrapped.
bool means_ineligible(std::string_view error) noexcept {
    return error.starts_with("READONLY") || error.find(" -READONLY ") != std::string_view::npos
           || error.starts_with("LOADING") || error.starts_with("NOAUTH")
           || error.starts_with("MASTERDOWN");
}

} // namespace redlock::core
