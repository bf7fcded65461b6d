#include "json.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace cli {
namespace {

template <typename Optional>
json milliseconds_or_null(const Optional& time) {
    return time ? json(time->count()) : json(nullptr);
}

} // namespace

json json_of(const redlock::diagnostics& it) {
    json votes = json::array();
    for (const redlock::master_vote& one : it.votes) {
        votes.push_back(
            {{"master", one.endpoint},
             {"vote", redlock::to_string(one.vote)},
             {"latency_us", one.latency.count()},
             {"time_left_ms", milliseconds_or_null(one.time_left)},
             {"text", one.text}});
    }
    return {
        {"message", it.message},
        {"attempts", it.attempts},
        {"quorum", it.quorum},
        {"elapsed_us", it.elapsed.count()},
        {"votes", std::move(votes)}};
}

json json_of(const redlock::lock_status& it) {
    json masters = json::array();
    for (const redlock::master_vote& one : it.masters) {
        masters.push_back(
            {{"master", one.endpoint},
             {"vote", redlock::to_string(one.vote)},
             {"owner", one.owner_digest},
             {"readers", one.readers},
             {"time_left_ms", milliseconds_or_null(one.time_left)},
             {"text", one.text}});
    }
    json out{
        {"state", redlock::to_string(it.state)},
        {"owner", it.owner_digest},
        {"readers", it.readers},
        {"time_left_ms", milliseconds_or_null(it.time_left)},
        {"masters", std::move(masters)}};
    for (const redlock::slot_status& one : it.slots) {
        out["slots"].push_back(
            {{"state", redlock::to_string(one.state)}, {"owner", one.owner_digest}});
    }
    return out;
}

void print(const json& it) {
    fmt::print("{}\n", it.dump(-1, ' ', false, json::error_handler_t::replace));
    require_written();
}

} // namespace cli
