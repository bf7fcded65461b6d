#include "batch_answers.hpp"

#include "decisions.hpp"

#include <algorithm>

namespace redlock::core {

batch_answers::batch_answers(
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
        call_ = kind == command_kind::remove    ? answer{}
                : kind == command_kind::acquire ? read_acquire(got, how)
                                                : read_extend(got, how);
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
bool batch_answers::well_formed(std::size_t locks) const noexcept {
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

answer batch_answers::next() noexcept {
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

answer batch_answers::decode(const reply& one) noexcept {
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
