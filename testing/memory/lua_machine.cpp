#include "lua_machine.hpp"

#include "core/bytes/scripts.hpp"

#include <cstdio>
#include <lua.hpp>
#include <stdexcept>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

namespace {

void push(lua_State* lua, const answer& value) {
    switch (value.what) {
    case answer::kind::integer:
        lua_pushnumber(lua, static_cast<lua_Number>(value.number));
        break;
    case answer::kind::bulk:
        lua_pushlstring(lua, value.text.data(), value.text.size());
        break;
    case answer::kind::nil:
        lua_pushboolean(lua, 0);
        break;
    case answer::kind::status:
    case answer::kind::error:
        lua_newtable(lua);
        lua_pushlstring(lua, value.text.data(), value.text.size());
        lua_setfield(lua, -2, value.is_error() ? "err" : "ok");
        break;
    case answer::kind::array:
        lua_createtable(lua, static_cast<int>(value.items.size()), 0);
        for (std::size_t i = 0; i < value.items.size(); ++i) {
            push(lua, value.items[i]);
            lua_rawseti(lua, -2, static_cast<int>(i) + 1);
        }
        break;
    }
}

// Returns the string at a stack index. It may contain any bytes.
std::string_view text_at(lua_State* lua, int index) {
    std::size_t size = 0;
    const char* const text = lua_tolstring(lua, index, &size);
    return text == nullptr ? std::string_view{} : std::string_view(text, size);
}

} // namespace

void lua_machine::closer::operator()(lua_State* lua) const noexcept {
    lua_close(lua);
}

lua_machine::lua_machine(editor edits) : lua_(luaL_newstate()), edits_(std::move(edits)) {
    lua_State* const lua = lua_.get();
    if (lua == nullptr) {
        throw std::runtime_error("no memory for Lua");
    }
    luaL_openlibs(lua);
    lua_newtable(lua);
    lua_pushlightuserdata(lua, this);
    lua_pushcclosure(lua, &lua_machine::call, 1);
    lua_setfield(lua, -2, "call");
    lua_pushlightuserdata(lua, this);
    lua_pushcclosure(lua, &lua_machine::protected_call, 1);
    lua_setfield(lua, -2, "pcall");
    lua_setglobal(lua, "redis");
    // As in Redis, a name that is not there is an error and not nil.
    lua_newtable(lua);
    lua_pushcfunction(lua, &lua_machine::missing_global);
    lua_setfield(lua, -2, "__index");
    lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

lua_machine::~lua_machine() = default;

int lua_machine::missing_global(lua_State* lua) {
    return luaL_error(
        lua,
        "Script attempted to access nonexistent global variable '%s'",
        luaL_checkstring(lua, 2));
}

const lua_machine::script& lua_machine::compile(std::string_view text) {
    if (const auto found = scripts_.find(text); found != scripts_.end()) {
        return *found->second;
    }
    auto made = std::make_unique<script>();
    made->text = text;
    made->sha1 = std::string_view(core::sha1_digest(text));
    const std::string executed = edits_ ? edits_(text) : made->text;
    lua_State* const lua = lua_.get();
    if (luaL_loadbuffer(lua, executed.data(), executed.size(), "@user_script") == 0) {
        made->function = luaL_ref(lua, LUA_REGISTRYINDEX);
    } else {
        made->error = "ERR Error compiling script (new function): " + std::string(text_at(lua, -1));
        lua_pop(lua, 1);
    }
    return *scripts_.emplace(made->text, std::move(made)).first->second;
}

// Leaves Redis' reply on the stack. Returns true if it is an error. The caller raises the error,
// and must own nothing with a destructor: Lua skips destructors.
bool lua_machine::call_redis(lua_State* lua) {
    const int count = lua_gettop(lua);
    answer said;
    std::vector<std::string> numbers;
    numbers.reserve(static_cast<std::size_t>(count));
    std::vector<std::string_view> list;
    bool fitting = count > 0;
    for (int i = 1; i <= count && fitting; ++i) {
        if (lua_type(lua, i) == LUA_TNUMBER) {
            char text[64];
            const int size = std::snprintf(text, sizeof text, "%.17g", lua_tonumber(lua, i));
            list.emplace_back(numbers.emplace_back(text, static_cast<std::size_t>(size)));
        } else if (lua_type(lua, i) == LUA_TSTRING) {
            list.push_back(text_at(lua, i));
        } else {
            fitting = false;
        }
    }
    if (fitting) {
        said = (*execute_)(list);
    } else {
        said = answer::error(
            count == 0 ? "ERR Please specify at least one argument for this redis lib call"
                       : "ERR Lua redis lib command arguments must be strings or integers");
    }
    push(lua, said);
    if (said.is_error()) {
        lua_Debug where{};
        if (lua_getstack(lua, 1, &where) != 0 && lua_getinfo(lua, "Sl", &where) != 0) {
            lua_pushinteger(lua, where.currentline);
            lua_setfield(lua, -2, "line");
        }
    }
    return said.is_error();
}

int lua_machine::call(lua_State* lua) {
    auto* const me = static_cast<lua_machine*>(lua_touserdata(lua, lua_upvalueindex(1)));
    return me->call_redis(lua) ? lua_error(lua) : 1;
}

int lua_machine::protected_call(lua_State* lua) {
    auto* const me = static_cast<lua_machine*>(lua_touserdata(lua, lua_upvalueindex(1)));
    me->call_redis(lua);
    return 1;
}

void lua_machine::set_words(const char* name, words list) {
    lua_State* const lua = lua_.get();
    lua_createtable(lua, static_cast<int>(list.size()), 0);
    for (std::size_t i = 0; i < list.size(); ++i) {
        lua_pushlstring(lua, list[i].data(), list[i].size());
        lua_rawseti(lua, -2, static_cast<int>(i) + 1);
    }
    lua_setglobal(lua, name);
}

answer lua_machine::run(const script& what, words keys, words arguments, const executor& execute) {
    if (!what.error.empty()) {
        return answer::error(what.error);
    }
    lua_State* const lua = lua_.get();
    execute_ = &execute;
    set_words("KEYS", keys);
    set_words("ARGV", arguments);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, what.function);
    const bool failed = lua_pcall(lua, 0, 1, 0) != 0;
    answer result = failed ? to_error(what) : to_answer(0);
    lua_settop(lua, 0);
    return result;
}

// Formats the error of a script like Redis 7.
answer lua_machine::to_error(const script& what) {
    lua_State* const lua = lua_.get();
    std::string text;
    std::string line = "?";
    if (lua_istable(lua, -1)) {
        lua_getfield(lua, -1, "err");
        text = text_at(lua, -1);
        lua_pop(lua, 1);
        lua_getfield(lua, -1, "line");
        line = lua_isnil(lua, -1) ? line : std::string(text_at(lua, -1));
        lua_pop(lua, 1);
    } else {
        text = "ERR " + std::string(text_at(lua, -1));
        const std::size_t start = text.find("user_script:");
        if (start != std::string::npos) {
            const std::size_t number = start + 12;
            line = text.substr(number, text.find(':', number) - number);
        }
    }
    return answer::error(text + " script: " + what.sha1 + ", on @user_script:" + line + ".");
}

// Converts the value at the top of the stack.
answer lua_machine::to_answer(int depth) {
    lua_State* const lua = lua_.get();
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        return answer::bulk(text_at(lua, -1));
    case LUA_TNUMBER:
        return answer::integer(static_cast<std::int64_t>(lua_tonumber(lua, -1)));
    case LUA_TBOOLEAN:
        return lua_toboolean(lua, -1) != 0 ? answer::integer(1) : answer::nil();
    case LUA_TTABLE:
        break;
    default:
        return answer::nil();
    }
    for (const char* const name : {"err", "ok"}) {
        lua_pushstring(lua, name);
        lua_rawget(lua, -2);
        if (lua_type(lua, -1) == LUA_TSTRING) {
            const answer::kind what = *name == 'e' ? answer::kind::error : answer::kind::status;
            answer said = answer::status(text_at(lua, -1));
            said.what = what;
            lua_pop(lua, 1);
            return said;
        }
        lua_pop(lua, 1);
    }
    std::vector<answer> items;
    for (int i = 1; depth < 16; ++i) {
        lua_rawgeti(lua, -1, i);
        if (lua_isnil(lua, -1)) {
            lua_pop(lua, 1);
            break;
        }
        items.push_back(to_answer(depth + 1));
        lua_pop(lua, 1);
    }
    return answer::array(std::move(items));
}

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
