// What is made of an answer: only the answers that the protocol names are votes, and only a sound
// description of a server lets it vote.

#include "core/bytes/answer.hpp"
#include "core/masters/admission.hpp"
#include "input.hpp"
#include "require.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace core = redlock::core;
using core::command_variant;
using core::reply;
using core::reply_type;
using fuzz::require;
using redlock::vote;

namespace {

// The first of three numbers, which is how every script of the guarded protocol answers.
std::optional<std::int64_t> status_of(const reply& got) {
    const auto number = [](const reply& one) { return one.type == reply_type::integer; };
    const bool three = got.type == reply_type::array && got.elements.size() == 3
                       && std::all_of(got.elements.begin(), got.elements.end(), number);
    return three ? std::optional(got.elements[0].integer) : std::nullopt;
}

// Lua counts no further without losing ones.
constexpr std::int64_t exact_max = (std::int64_t{1} << 53) - 1;
bool is_counter(const reply& got) {
    return got.elements[1].integer >= 0 && got.elements[1].integer <= exact_max;
}

void check_answer(core::command_kind kind, const reply& got, command_variant how) {
    const core::answer said = core::read_answer(kind, got, how);
    require(
        !said.use_eval || (got.is_error() && how != command_variant::eval),
        "only a refusal is said otherwise, and nothing comes after EVAL");
    const bool granted = said.said == vote::granted;
    require(!got.is_error() || !granted, "an error grants nothing");
    require(said.quarantine.count() >= 0 && said.server_us >= 0, "times do not run backwards");
    require(!said.left || said.left->count() >= 0, "what is left of a lease is not negative");
    require(!said.late || !granted, "what came late was not done");
    require(!said.healed || granted, "what is healed is granted");

    const auto status = status_of(got);
    const bool counted = status == 1 && is_counter(got);
    if (kind == core::command_kind::acquire && how == command_variant::native) {
        const bool ok = got.type == reply_type::status && got.text == "OK";
        require(granted == ok, "SET is granted by OK and by nothing else");
        require((said.said == vote::held) == (got.type == reply_type::nil), "SET: nil is held");
    } else if (kind == core::command_kind::acquire) {
        const bool may_raise = counted && got.elements[1].integer < exact_max;
        require(granted == may_raise, "an acquire is granted by 1");
        require((said.said == vote::held) == (status == 0), "an acquire: 0 is held");
        require(said.counter == 0 || granted, "only a grant has a counter");
    } else if (kind == core::command_kind::raise) {
        require(granted == counted, "a raise is granted by 1");
    } else if (kind == core::command_kind::remove) {
        require(granted == (status == 1), "a removal is granted by 1");
        require((said.said == vote::absent) == (status == -1), "a removal: -1 is absent");
    } else {
        require(granted == (status == 1 || status == 2), "an extension is granted by 1 or 2");
        require(said.healed == (status == 2), "2 is healed");
    }
}

void check_handshake(const reply& got) {
    const auto said = core::read_handshake(got);
    reply numbers = got;
    numbers.elements = got.elements.first(std::min<std::size_t>(got.elements.size(), 3));
    const auto status = status_of(numbers);
    const bool refuses = status < 0 && got.elements.size() == 3;
    const bool answers =
        status >= 0 && got.elements.size() == 4 && got.elements[3].type == reply_type::string;
    require(
        said.has_value() == (refuses || answers), "a handshake answers three numbers and a record");
    require(
        !said || (said->quarantine.count() >= 0 && said->server_us >= 0),
        "times do not run backwards");
}

void check_answers(std::string_view bytes) {
    core::reply_reader reader;
    reader.feed({bytes.data(), bytes.size()});
    while (const reply* const answer = reader.next()) {
        for (const command_variant how :
             {command_variant::native, command_variant::evalsha, command_variant::eval}) {
            for (const auto kind :
                 {core::command_kind::acquire,
                  core::command_kind::raise,
                  core::command_kind::remove,
                  core::command_kind::extend}) {
                check_answer(kind, *answer, how);
            }
        }
        check_handshake(*answer);
        core::means_ineligible(answer->text);
    }
}

std::string written_out(const core::server_info& info) {
    const bool valkey = info.version.starts_with("valkey ");
    const std::string version = info.version.substr(info.version.find(' ') + 1);
    return "redis_version:" + (valkey ? std::string("7.2.4") : version)
           + (valkey ? "\r\nvalkey_version:" + version : std::string()) + "\r\nrun_id:"
           + info.run_id + "\r\nrole:" + info.role + "\r\nmaxmemory_policy:" + info.eviction_policy
           + "\r\nmaxmemory:" + (info.memory_limited ? "1" : "0") + "\r\nuptime_in_seconds:"
           + std::to_string(info.uptime.count()) + "\r\nloading:" + (info.loading ? "1" : "0")
           + "\r\nmaster_replid2:" + info.promoted_from + "\r\n";
}

void check_info(std::string_view text, bool met_late) {
    std::optional<core::server_info> info = core::parse_info(text);
    if (!info) {
        return;
    }
    require(!info->run_id.empty() && !info->role.empty(), "a server has a run id and a role");
    require(info->uptime <= std::chrono::years(1), "an uptime fits into nanoseconds");
    require(
        info->version.starts_with("redis ") || info->version.starts_with("valkey "),
        "a version says of what");

    const auto again = core::parse_info(written_out(*info));
    require(
        again && again->run_id == info->run_id && again->version == info->version
            && again->role == info->role && again->uptime == info->uptime
            && again->eviction_policy == info->eviction_policy && again->loading == info->loading
            && again->memory_limited == info->memory_limited
            && again->promoted_from == info->promoted_from && again->commands == info->commands,
        "what was read is read again from what it says");

    core::settings rules;
    rules.max_ttl = std::chrono::seconds(30);
    const redlock::time_point now{std::chrono::hours(1)};
    for (const bool quarantine : {false, true}) {
        rules.quarantine = quarantine;
        const redlock::time_point since = met_late ? now - std::chrono::seconds(9) : core::never;
        const core::eligibility judged = core::judge(*info, rules, now, since);
        require(judged.fit == judged.text.empty(), "an ineligible master has a reason");
        require(
            !judged.fit
                || (info->role == "master" && !info->loading
                    && (!info->memory_limited || info->eviction_policy == "noeviction")),
            "fit is a master that remembers");
        const bool remembers =
            !quarantine
            || (!met_late && info->uptime - std::chrono::seconds(1) >= rules.quarantine_time());
        if (judged.fit) {
            require(
                (judged.votes_from <= now) == remembers,
                "a server votes at once only if it has been up, and known, for long enough");
        }
        require(
            judged.votes_from <= now + rules.quarantine_time(), "no quarantine is longer than one");
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::input in(data, size);
    const std::uint8_t what = in.byte();
    if ((what & 1U) != 0) {
        check_info(in.rest(), (what & 2U) != 0);
    } else {
        check_answers(in.rest());
    }
    return 0;
}
