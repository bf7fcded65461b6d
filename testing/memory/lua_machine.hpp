// Runs the real text of scripts in a real Lua 5.1 with the type conversions of Redis. One machine
// serves all masters and all seeds of a thread: a script is compiled once.

#pragma once

#include "answer.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

struct lua_State;

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

class lua_machine {
public:
    /// A compiled script.
    struct script {
        std::string text;
        std::string sha1;
        int function = 0;  // its place in Lua's registry
        std::string error; // the compiler's error, or empty
    };
    using words = std::span<const std::string_view>;
    /// Executes one command for `redis.call`.
    using executor = std::function<answer(words)>;

    /// Returns the text to execute instead of a script's, for wrong variants.
    using editor = std::function<std::string(std::string_view)>;

    explicit lua_machine(editor edits = {});
    ~lua_machine();
    lua_machine(const lua_machine&) = delete;
    lua_machine& operator=(const lua_machine&) = delete;

    /// The script with that text. Lives as long as the machine.
    const script& compile(std::string_view text);

    answer run(const script& what, words keys, words arguments, const executor& execute);

private:
    static int call(lua_State* lua);
    static int protected_call(lua_State* lua);
    static int missing_global(lua_State* lua);
    bool call_redis(lua_State* lua);
    void set_words(const char* name, words list);
    answer to_answer(int depth);
    answer to_error(const script& what);

    struct closer {
        void operator()(lua_State* lua) const noexcept;
    };
    struct text_hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept {
            return std::hash<std::string_view>()(text);
        }
    };
    std::unique_ptr<lua_State, closer> lua_;
    std::unordered_map<std::string, std::unique_ptr<script>, text_hash, std::equal_to<>> scripts_;
    const executor* execute_ = nullptr;
    editor edits_;
};

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
