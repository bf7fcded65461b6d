// The commands that read and write keys.
#include "arguments.hpp"
#include "server.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <optional>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

namespace {

constexpr std::string_view wrong_type =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

std::optional<double> float_in(std::string_view text) {
    if (text == "-inf" || text == "+inf" || text == "inf") {
        const double most = std::numeric_limits<double>::infinity();
        return text[0] == '-' ? -most : most;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool exact = error == std::errc() && end == text.data() + text.size() && !text.empty();
    return exact ? std::optional(value) : std::nullopt;
}

std::string in_words(double score) {
    char text[64];
    return {text, static_cast<std::size_t>(std::snprintf(text, sizeof text, "%.17g", score))};
}

} // namespace

answer server::set(words command) {
    bool only_new = false;
    bool only_old = false;
    bool keep_ttl = false;
    std::optional<std::string_view> expiry;
    std::int64_t unit = 1;
    for (std::size_t i = 3; i < command.size(); ++i) {
        const std::string_view word = command[i];
        const bool has_next = i + 1 < command.size();
        if (same(word, "NX") && !only_old) {
            only_new = true;
        } else if (same(word, "XX") && !only_new) {
            only_old = true;
        } else if (same(word, "KEEPTTL") && !expiry) {
            keep_ttl = true;
        } else if ((same(word, "PX") || same(word, "EX")) && !expiry && !keep_ttl && has_next) {
            expiry = command[++i];
            unit = same(word, "EX") ? 1000 : 1;
        } else {
            return answer::error("ERR syntax error");
        }
    }
    std::int64_t expires_ms = entry::no_expiry;
    if (expiry) {
        const std::optional<std::int64_t> given = integer_in(*expiry);
        if (!given) {
            return answer::error(not_integer);
        }
        if (*given <= 0 || *given > (entry::no_expiry - now_ms()) / unit) {
            return answer::error("ERR invalid expire time in 'set' command");
        }
        expires_ms = now_ms() + *given * unit;
    }
    const entry* const found = data.find(command[1], now_ms());
    if ((only_new && found != nullptr) || (only_old && found == nullptr)) {
        return answer::nil();
    }
    if (keep_ttl && found != nullptr) {
        expires_ms = found->expires_ms;
    }
    entry& made = data.put(command[1]);
    made.value = command[2];
    made.expires_ms = expires_ms;
    return answer::ok();
}

answer server::get(words command) {
    const entry* const found = data.find(command[1], now_ms());
    if (found == nullptr) {
        return answer::nil();
    }
    return found->is != entry::type::text ? answer::error(wrong_type) : answer::bulk(found->value);
}

answer server::incr(words command) {
    entry* const found = data.find(command[1], now_ms());
    if (found == nullptr) {
        entry& made = data.put(command[1]);
        made.value = "1";
        return answer::integer(1);
    }
    if (found->is != entry::type::text) {
        return answer::error(wrong_type);
    }
    const std::optional<std::int64_t> value = integer_in(found->value);
    if (!value) {
        return answer::error(not_integer);
    }
    if (*value == std::numeric_limits<std::int64_t>::max()) {
        return answer::error("ERR increment or decrement would overflow");
    }
    found->value = std::to_string(*value + 1);
    return answer::integer(*value + 1);
}

answer server::mget(words command) {
    std::vector<answer> values;
    for (const std::string_view key : command.subspan(1)) {
        const entry* const found = data.find(key, now_ms());
        values.push_back(
            found == nullptr || found->is != entry::type::text ? answer::nil()
                                                               : answer::bulk(found->value));
    }
    return answer::array(std::move(values));
}

answer server::del(words command) {
    std::int64_t removed = 0;
    for (const std::string_view key : command.subspan(1)) {
        if (entry* const found = data.find(key, now_ms())) {
            data.remove(*found);
            ++removed;
        }
    }
    return answer::integer(removed);
}

answer server::exists(words command) {
    std::int64_t there = 0;
    for (const std::string_view key : command.subspan(1)) {
        there += data.find(key, now_ms()) != nullptr ? 1 : 0;
    }
    return answer::integer(there);
}

answer server::pttl(words command) {
    const entry* const found = data.find(command[1], now_ms());
    if (found == nullptr) {
        return answer::integer(-2);
    }
    return answer::integer(
        found->expires_ms == entry::no_expiry ? -1 : found->expires_ms - now_ms());
}

answer server::pexpire(words command) {
    const std::optional<std::int64_t> ttl = integer_in(command[2]);
    if (!ttl) {
        return answer::error(not_integer);
    }
    if (command.size() > 3) {
        return answer::error("ERR Unsupported option " + std::string(command[3]));
    }
    if (*ttl > entry::no_expiry - now_ms()) {
        return answer::error("ERR invalid expire time in 'pexpire' command");
    }
    entry* const found = data.find(command[1], now_ms());
    if (found == nullptr) {
        return answer::integer(0);
    }
    if (*ttl <= 0) {
        data.remove(*found);
    } else {
        found->expires_ms = now_ms() + *ttl;
    }
    return answer::integer(1);
}

answer server::hset(words command) {
    if (command.size() % 2 != 0) {
        return answer::error("ERR wrong number of arguments for 'hset' command");
    }
    entry* hash = data.find(command[1], now_ms());
    if (hash == nullptr) {
        hash = &data.put(command[1]);
        hash->is = entry::type::hash;
    } else if (hash->is != entry::type::hash) {
        return answer::error(wrong_type);
    }
    std::int64_t added = 0;
    for (std::size_t i = 2; i < command.size(); i += 2) {
        const auto field = std::ranges::find(
            hash->fields, command[i], &std::pair<std::string, std::string>::first);
        if (field == hash->fields.end()) {
            hash->fields.emplace_back(command[i], command[i + 1]);
            ++added;
        } else {
            field->second = command[i + 1];
        }
    }
    return answer::integer(added);
}

answer server::hget(words command) {
    answer found = hmget(command);
    return found.is_error() ? found : std::move(found.items.front());
}

answer server::hmget(words command) {
    const entry* const hash = data.find(command[1], now_ms());
    if (hash != nullptr && hash->is != entry::type::hash) {
        return answer::error(wrong_type);
    }
    std::vector<answer> values(command.size() - 2);
    for (std::size_t i = 0; hash != nullptr && i < values.size(); ++i) {
        const auto field = std::ranges::find(
            hash->fields, command[i + 2], &std::pair<std::string, std::string>::first);
        if (field != hash->fields.end()) {
            values[i] = answer::bulk(field->second);
        }
    }
    return answer::array(std::move(values));
}

// Returns the sorted set, or null. `wrong`: the key has another type.
entry* server::sorted_set(std::string_view key, bool& wrong) {
    entry* const found = data.find(key, now_ms());
    wrong = found != nullptr && found->is != entry::type::sorted_set;
    return wrong ? nullptr : found;
}

// One score and member at a time, which is all that the scripts send.
answer server::zadd(words command) {
    const std::optional<double> score = float_in(command[2]);
    if (command.size() != 4) {
        return answer::error("ERR syntax error");
    }
    if (!score) {
        return answer::error("ERR value is not a valid float");
    }
    bool wrong = false;
    entry* set = sorted_set(command[1], wrong);
    if (wrong) {
        return answer::error(wrong_type);
    }
    if (set == nullptr) {
        set = &data.put(command[1]);
        set->is = entry::type::sorted_set;
    }
    const std::string member(command[3]);
    const auto removed =
        std::erase_if(set->members, [&](const auto& one) { return one.second == member; });
    set->members.emplace_back(*score, member);
    std::ranges::sort(set->members);
    return answer::integer(removed == 0 ? 1 : 0);
}

answer server::zscore(words command) {
    bool wrong = false;
    const entry* const set = sorted_set(command[1], wrong);
    for (std::size_t i = 0; set != nullptr && i < set->members.size(); ++i) {
        if (set->members[i].second == command[2]) {
            return answer::bulk(in_words(set->members[i].first));
        }
    }
    return wrong ? answer::error(wrong_type) : answer::nil();
}

answer server::zrank(words command) {
    bool wrong = false;
    const entry* const set = sorted_set(command[1], wrong);
    for (std::size_t i = 0; set != nullptr && i < set->members.size(); ++i) {
        if (set->members[i].second == command[2]) {
            return answer::integer(static_cast<std::int64_t>(i));
        }
    }
    return wrong ? answer::error(wrong_type) : answer::nil();
}

answer server::zrem(words command) {
    bool wrong = false;
    entry* const set = sorted_set(command[1], wrong);
    std::int64_t removed = 0;
    for (std::size_t i = 2; set != nullptr && i < command.size(); ++i) {
        removed += static_cast<std::int64_t>(
            std::erase_if(set->members, [&](const auto& one) { return one.second == command[i]; }));
    }
    if (set != nullptr && set->members.empty()) {
        data.remove(*set);
    }
    return wrong ? answer::error(wrong_type) : answer::integer(removed);
}

answer server::zrange(words command) {
    const std::optional<std::int64_t> first = integer_in(command[2]);
    const std::optional<std::int64_t> last = integer_in(command[3]);
    const bool scores = command.size() == 5 && same(command[4], "WITHSCORES");
    if (command.size() > 5 || (command.size() == 5 && !scores)) {
        return answer::error("ERR syntax error");
    }
    if (!first || !last) {
        return answer::error(not_integer);
    }
    bool wrong = false;
    const entry* const set = sorted_set(command[1], wrong);
    if (wrong) {
        return answer::error(wrong_type);
    }
    std::vector<answer> items;
    const auto size = set == nullptr ? 0 : static_cast<std::int64_t>(set->members.size());
    const auto from = std::max<std::int64_t>(0, *first < 0 ? size + *first : *first);
    const auto to = std::min(size - 1, *last < 0 ? size + *last : *last);
    for (std::int64_t i = from; i <= to; ++i) {
        const auto& [score, member] = set->members[static_cast<std::size_t>(i)];
        items.push_back(answer::bulk(member));
        if (scores) {
            items.push_back(answer::bulk(in_words(score)));
        }
    }
    return answer::array(std::move(items));
}

answer server::zcard(words command) {
    bool wrong = false;
    const entry* const set = sorted_set(command[1], wrong);
    return wrong ? answer::error(wrong_type)
                 : answer::integer(
                     set == nullptr ? 0 : static_cast<std::int64_t>(set->members.size()));
}

answer server::zremrangebyscore(words command) {
    const auto bound = [](std::string_view text, bool& open) {
        open = text.starts_with('(');
        return float_in(open ? text.substr(1) : text);
    };
    bool after = false;
    bool before = false;
    const std::optional<double> low = bound(command[2], after);
    const std::optional<double> high = bound(command[3], before);
    if (!low || !high) {
        return answer::error("ERR min or max is not a float");
    }
    bool wrong = false;
    entry* const set = sorted_set(command[1], wrong);
    if (set == nullptr) {
        return wrong ? answer::error(wrong_type) : answer::integer(0);
    }
    const auto removed = std::erase_if(set->members, [&](const auto& one) {
        return (after ? one.first > *low : one.first >= *low)
               && (before ? one.first < *high : one.first <= *high);
    });
    if (set->members.empty()) {
        data.remove(*set);
    }
    return answer::integer(static_cast<std::int64_t>(removed));
}

answer server::flushall(words) {
    data.clear();
    return answer::ok();
}

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
