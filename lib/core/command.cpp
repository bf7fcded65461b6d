#include "command.hpp"

#include "scripts.hpp"

#include <charconv>

namespace redlock::core {

namespace {

class decimal {
public:
    explicit decimal(std::int64_t value) noexcept
        : size_(static_cast<std::size_t>(
            std::to_chars(text_, text_ + sizeof text_, value).ptr - text_)) {}
    // NOLINTNEXTLINE(google-explicit-constructor): it is an argument like the others
    operator std::string_view() const noexcept { return {text_, size_}; }

private:
    char text_[24];
    std::size_t size_;
};

// "ERR unknown command", "ERR syntax error" (an older SET without IFEQ), "NOPERM ...": the server
// will not have it said this way, but may in another.
bool refuses_command(std::string_view error) noexcept {
    return error.starts_with("NOPERM") || error.starts_with("ERR unknown")
           || error.starts_with("ERR syntax");
}

} // namespace

void append_set(
    std::string& out, std::string_view key, std::string_view token, std::chrono::milliseconds ttl) {
    append_command(out, {"SET", key, token, "NX", "PX", decimal(ttl.count())});
}

void append_remove(
    std::string& out,
    rung how,
    native_delete native,
    std::string_view key,
    std::string_view token) {
    if (how == rung::native && native == native_delete::delex) {
        append_command(out, {"DELEX", key, "IFEQ", token});
    } else if (how == rung::native) {
        append_command(out, {"DELIFEQ", key, token});
    } else if (how == rung::evalsha) {
        append_command(out, {"EVALSHA", compare_and_delete.sha1, "1", key, token});
    } else {
        append_command(out, {"EVAL", compare_and_delete.text, "1", key, token});
    }
}

void append_extend(
    std::string& out,
    rung how,
    std::string_view key,
    std::string_view token,
    std::chrono::milliseconds ttl) {
    const decimal ttl_ms(ttl.count());
    if (how == rung::native) {
        append_command(out, {"SET", key, token, "IFEQ", token, "PX", ttl_ms});
    } else if (how == rung::evalsha) {
        append_command(out, {"EVALSHA", compare_and_extend.sha1, "1", key, token, ttl_ms});
    } else {
        append_command(out, {"EVAL", compare_and_extend.text, "1", key, token, ttl_ms});
    }
}

vote vote_on_set(const reply& answer) noexcept {
    if (answer.type == reply_type::status && answer.text == "OK") {
        return vote::granted;
    }
    return answer.type == reply_type::nil ? vote::held : vote::error;
}

compared compare_result(const reply& answer, rung how) noexcept {
    if (answer.is_error()) {
        const bool retry = how != rung::eval
                           && (answer.text.starts_with("NOSCRIPT") || refuses_command(answer.text));
        // A key of another type under the lock's name is not ours.
        const bool foreign = answer.text.find("WRONGTYPE") != std::string_view::npos;
        return {.said = foreign ? vote::foreign : vote::error, .say_otherwise = retry && !foreign};
    }
    if (how == rung::native) {
        const bool done = answer.type == reply_type::status
                          || (answer.type == reply_type::integer && answer.integer == 1);
        return done ? compared{.said = vote::granted} : compared{.ask_exists = true};
    }
    if (answer.type != reply_type::integer) {
        return {};
    }
    switch (answer.integer) {
    case 1:
        return {.said = vote::granted};
    case 0:
        return {.said = vote::foreign};
    case -1:
        return {.said = vote::absent};
    default:
        return {};
    }
}

vote vote_on_exists(const reply& answer) noexcept {
    if (answer.type != reply_type::integer) {
        return vote::error;
    }
    return answer.integer == 0 ? vote::absent : vote::foreign;
}

bool means_unfit(std::string_view error) noexcept {
    return error.starts_with("READONLY") || error.starts_with("LOADING")
           || error.starts_with("NOAUTH") || error.starts_with("MASTERDOWN");
}

} // namespace redlock::core
