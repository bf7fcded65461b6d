#include "virtual_master.hpp"

#include "core/bytes/fair_queue_scripts.hpp"
#include "core/bytes/form_scripts.hpp"
#include "core/bytes/guarded_scripts.hpp"

namespace unit {

namespace core = redlock::core;

namespace {

memory::lua_machine& lua() {
    static memory::lua_machine one;
    return one;
}

std::string_view name_of(const std::string& word) {
    struct named_script {
        const core::script& script;
        std::string_view name;
    };
    static constexpr named_script known[] = {
        {core::guarded_look, "look"},
        {core::guarded_handshake, "handshake"},
        {core::guarded_acquire, "acquire"},
        {core::guarded_extend, "extend"},
        {core::all_heal, "heal"},
        {core::all_raise, "raise"},
        {core::guarded_release, "remove"},
        {core::compare_and_extend_each, "extend"},
        {core::ticket_take, "turn"},
        {core::ticket_leave, "leave"}};
    for (const named_script& one : known) {
        if (word == one.script.text || word == one.script.sha1) {
            return one.name;
        }
    }
    return word;
}

} // namespace

virtual_master::virtual_master() : server(lua()) {}

std::optional<arguments> virtual_master::take_command(std::string& bytes) {
    std::size_t at = 0;
    std::vector<std::string_view> words;
    if (!memory::take_command(bytes, at, words)) {
        return std::nullopt;
    }
    arguments taken(words.begin(), words.end());
    bytes.erase(0, at);
    return taken;
}

std::vector<std::string> virtual_master::lines_of(std::string bytes) {
    std::vector<std::string> found;
    while (const auto words = take_command(bytes)) {
        std::string& line = found.emplace_back();
        for (const std::string& word : *words) {
            line.append(line.empty() ? "" : " ").append(name_of(word));
        }
    }
    return found;
}

std::int64_t virtual_master::wall_us(time_point now) const {
    return std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch() + ahead).count();
}

std::string virtual_master::execute(const arguments& words, time_point now) {
    std::string line;
    for (const std::string& word : words) {
        line.append(line.empty() ? "" : " ").append(name_of(word));
    }
    if (line != "EVAL return 1 0") { // whether it runs scripts, before each INFO
        seen.push_back(line);
    }
    const std::string& name = words.at(0);
    // What holds for EVALSHA holds for EVAL as well.
    for (const std::string& key : {name, name == "EVAL" ? std::string("EVALSHA") : name}) {
        if (const auto found = replies.find(key); found != replies.end()) {
            return found->second;
        }
    }
    std::string bytes;
    reply_to(words, now).encode(bytes);
    return bytes;
}

memory::answer virtual_master::reply_to(const arguments& words, time_point now) {
    const std::string& name = words.at(0);
    if (forbidden.contains(name)) {
        return memory::answer::error(
            "NOPERM this user has no permissions to run the '" + name + "' command");
    }
    if (name == "SUBSCRIBE" || name == "UNSUBSCRIBE") {
        return memory::answer::array(
            {memory::answer::bulk(memory::lower_case(name)),
             memory::answer::bulk(words.at(1)),
             memory::answer::integer(1)});
    }
    const auto loads = info_overrides.find("loading");
    if (loads != info_overrides.end() && loads->second == "1" && name != "INFO"
        && name != "CLIENT") {
        return memory::answer::error("LOADING Redis is loading the dataset in memory");
    }
    refuses_publish = forbidden.contains("PUBLISH");
    const std::vector<std::string_view> views(words.begin(), words.end());
    return server::execute(views, wall_us(now));
}

std::string virtual_master::run(const arguments& words, time_point now) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    return server::execute(views, wall_us(now)).describe();
}

void virtual_master::put(const std::string& key, const std::string& value, time_point expires) {
    memory::entry& made = data.put(key);
    made.value = value;
    made.expires_ms = expires == core::forever ? memory::entry::no_expiry : wall_us(expires) / 1000;
}

void virtual_master::drop(const std::string& key) {
    run({"DEL", key}, {});
}

std::optional<std::string> virtual_master::value_of(std::string_view key, time_point now) {
    const memory::entry* const found = data.find(key, wall_us(now) / 1000);
    return found == nullptr ? std::nullopt : std::optional(found->value);
}

time_point virtual_master::expires(std::string_view key) const {
    const auto found = std::ranges::find(data.entries(), key, &memory::entry::key);
    return time_point(std::chrono::milliseconds(found->expires_ms) - ahead);
}

void virtual_master::know(const core::script& one) {
    run({"SCRIPT", "LOAD", std::string(one.text)}, {});
}

std::size_t virtual_master::count(std::string_view start) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        seen, [start](const std::string& line) { return line.starts_with(start); }));
}

} // namespace unit
