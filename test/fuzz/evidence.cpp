#include "evidence.hpp"

#include "core/bytes/scripts.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace fuzz {

namespace core = redlock::core;

void evidence::restart() {
    match();
    if (!statuses_.empty()) {
        // The master may have answered, in advance, a command that was queued and dropped with the
        // connection within one event: nobody but the engine has seen that one.
        for (const std::string& token : named_) {
            until_[token] = core::forever;
        }
    }
    named_.clear();
    reader_.clear();
    commands_.clear();
    statuses_.clear();
    left_.clear();
}

void evidence::said(const std::vector<std::string>& words, time_point now) {
    command asked;
    const auto lease = [&](std::span<const std::string> tokens, const std::string& ttl) {
        asked.tokens.assign(tokens.begin(), tokens.end());
        named_.insert(tokens.begin(), tokens.end());
        asked.until =
            core::guaranteed_until(now, std::chrono::milliseconds(std::stoll(ttl)), drift_);
    };
    const std::span all(words);
    const std::string& name = words.at(0);
    if (name == "SET") {
        lease(all.subspan(2, 1), words.back());
        left_.insert(words.at(2));
    } else if ((name == "EVAL" || name == "EVALSHA") && words.size() > 5) {
        const std::size_t locks = std::stoul(words.at(2));
        const auto tokens = all.subspan(4 + locks, locks); // after the ttl
        const auto& extend = core::compare_and_extend_each;
        if (words.at(1) == extend.text || words.at(1) == extend.sha1) {
            lease(tokens, words.at(3 + locks));
        } else {
            for (const std::string& token : tokens) {
                left_.erase(token);
                removed_.insert(token);
            }
        }
    }
    commands_.push_back(asked);
}

void evidence::heard(std::string_view bytes) {
    if (!reader_.feed({bytes.data(), bytes.size()})) {
        return;
    }
    while (const core::reply* const answer = reader_.next()) {
        status& one = statuses_.emplace_back();
        one.ok = answer->is_ok();
        if (answer->type == core::reply_type::array && answer->elements.size() >= 2) {
            one.ok = answer->elements[0].integer == 1;
            for (std::size_t i = 2; i < answer->elements.size(); i += 2) {
                one.refused.insert(answer->elements[i].integer);
            }
        }
    }
}

void evidence::match() {
    for (; !commands_.empty() && !statuses_.empty(); commands_.pop_front(), statuses_.pop_front()) {
        const command& asked = commands_.front();
        const status& answer = statuses_.front();
        for (std::size_t i = 0; answer.ok && i < asked.tokens.size(); ++i) {
            if (!answer.refused.contains(static_cast<std::int64_t>(i + 1))) {
                time_point& until = until_.try_emplace(asked.tokens[i], core::never).first->second;
                until = std::max(until, asked.until);
            }
        }
    }
}

time_point evidence::until(const std::string& token) {
    match();
    const auto found = until_.find(token);
    return found == until_.end() ? core::never : found->second;
}

} // namespace fuzz
