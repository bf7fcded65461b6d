#include "audience.hpp"

#include <algorithm>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

namespace {

answer confirmation(std::string_view what, answer channel, std::int64_t left) {
    return answer::array({answer::bulk(what), std::move(channel), answer::integer(left)});
}

} // namespace

std::int64_t audience::channels_of(listener who) const {
    return std::ranges::count(places_, who, &place::who);
}

std::optional<std::vector<answer>> audience::execute(listener who, server::words command) {
    const std::string word = lower_case(command[0]);
    const bool subscribes = word == "subscribe";
    const bool unsubscribes = word == "unsubscribe";
    const bool listens = channels_of(who) > 0;
    std::vector<answer> said;
    if (!subscribes && !unsubscribes) {
        if (!listens) {
            return std::nullopt;
        }
        if (word == "ping" && command.size() <= 2) {
            said.push_back(answer::array(
                {answer::bulk("pong"),
                 answer::bulk(command.size() == 2 ? command[1] : std::string_view())}));
        } else {
            said.push_back(answer::error(
                "ERR Can't execute '" + word
                + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
                  "this context"));
        }
        return said;
    }
    if (subscribes && command.size() == 1) {
        said.push_back(answer::error("ERR wrong number of arguments for 'subscribe' command"));
        return said;
    }
    for (const std::string_view channel : command.subspan(1)) {
        const auto mine = std::ranges::find_if(
            places_, [&](const place& one) { return one.who == who && one.channel == channel; });
        if (subscribes && mine == places_.end()) {
            places_.push_back({who, std::string(channel)});
        } else if (unsubscribes && mine != places_.end()) {
            places_.erase(mine);
        }
        said.push_back(confirmation(word, answer::bulk(channel), channels_of(who)));
    }
    if (unsubscribes && command.size() == 1) {
        for (const place& one : places_) {
            if (one.who == who) {
                const std::int64_t left =
                    channels_of(who) - static_cast<std::int64_t>(said.size()) - 1;
                said.push_back(confirmation(word, answer::bulk(one.channel), left));
            }
        }
        if (said.empty()) {
            said.push_back(confirmation(word, answer::nil(), 0));
        }
        leave(who);
    }
    return said;
}

std::vector<audience::listener> audience::of(std::string_view channel) const {
    std::vector<listener> found;
    for (const place& one : places_) {
        if (one.channel == channel) {
            found.push_back(one.who);
        }
    }
    return found;
}

void audience::leave(listener who) {
    std::erase_if(places_, [who](const place& one) { return one.who == who; });
}

answer message(std::string_view channel, std::string_view text) {
    return answer::array({answer::bulk("message"), answer::bulk(channel), answer::bulk(text)});
}

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
