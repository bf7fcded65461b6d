#include "evidence.hpp"

#include <algorithm>

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
    const auto lease = [&](const std::string& token, const std::string& ttl) {
        asked.token = token;
        named_.insert(token);
        asked.until =
            core::guaranteed_until(now, std::chrono::milliseconds(std::stoll(ttl)), drift_);
    };
    const std::string& name = words.at(0);
    const bool script = name == "EVAL" || name == "EVALSHA";
    if (name == "SET") {
        lease(words.at(2), words.back());
        asked.counts_status = true;
        left_.insert(words.at(2));
    } else if (script && words.size() == 6) { // text, 1, key, token, ttl
        lease(words.at(4), words.at(5));
        asked.counts_one = true;
    } else if (script && words.size() > 4) { // the same without a ttl
        left_.erase(words.at(4));
        removed_.insert(words.at(4));
    }
    commands_.push_back(asked);
}

void evidence::heard(std::string_view bytes) {
    if (!reader_.feed({bytes.data(), bytes.size()})) {
        return;
    }
    while (const core::reply* const answer = reader_.next()) {
        const bool one = answer->type == core::reply_type::integer && answer->integer == 1;
        const bool status = answer->type == core::reply_type::status;
        statuses_.emplace_back(one ? ":1" : status ? "+" + std::string(answer->text) : "");
    }
}

void evidence::match() {
    for (; !commands_.empty() && !statuses_.empty(); commands_.pop_front(), statuses_.pop_front()) {
        const command& asked = commands_.front();
        const std::string& answer = statuses_.front();
        const bool positive =
            (asked.counts_one && answer == ":1") || (asked.counts_status && answer == "+OK");
        if (positive) {
            time_point& until = until_.try_emplace(asked.token, core::never).first->second;
            until = std::max(until, asked.until);
        }
    }
}

time_point evidence::until(const std::string& token) {
    match();
    const auto found = until_.find(token);
    return found == until_.end() ? core::never : found->second;
}

} // namespace fuzz
