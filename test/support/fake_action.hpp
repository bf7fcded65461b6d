// The ways in which a fake master can misbehave on a command. A connection replies in order, so
// whatever holds one reply back holds back the later replies; those commands are executed all the
// same, except after one that hangs unexecuted. Other connections go on.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace redlock::test {

class fake_action {
public:
    enum class kind {
        obey,               // execute and answer
        reply,              // answer `text` without executing
        hang,               // read it, neither execute nor answer before release_hung()
        execute_then_hang,  // execute at once, answer at release_hung()
        close_before_reply, // close without executing
        execute_then_close, // execute, then close: the answer is lost
        close_mid_reply,    // execute, send `size` bytes of the answer, then close
        split_bytes,        // execute, send one byte per write
        garbage,            // answer what is not RESP, without executing
        too_large,          // answer a bulk string of `size` bytes, without executing
    };

    static fake_action obey() { return fake_action(kind::obey); }
    static fake_action reply(std::string raw) {
        fake_action result(kind::reply);
        result.text_ = std::move(raw);
        return result;
    }
    static fake_action hang() { return fake_action(kind::hang); }
    static fake_action execute_then_hang() { return fake_action(kind::execute_then_hang); }
    static fake_action close_before_reply() { return fake_action(kind::close_before_reply); }
    static fake_action execute_then_close() { return fake_action(kind::execute_then_close); }
    static fake_action close_mid_reply(std::size_t bytes) {
        return fake_action(kind::close_mid_reply, bytes);
    }
    static fake_action split_bytes() { return fake_action(kind::split_bytes); }
    static fake_action garbage() { return fake_action(kind::garbage); }
    static fake_action too_large(std::size_t bytes) { return fake_action(kind::too_large, bytes); }

    kind what() const noexcept { return kind_; }
    const std::string& text() const noexcept { return text_; }
    std::size_t size() const noexcept { return size_; }

private:
    explicit fake_action(kind what, std::size_t size = 0) : kind_(what), size_(size) {}

    kind kind_;
    std::size_t size_;
    std::string text_;
};

} // namespace redlock::test
