#include "labels.hpp"

namespace demo {

style colour_of(redlock::master_state state) {
    using redlock::master_state;
    switch (state) {
    case master_state::admitted:
        return style::green;
    case master_state::quarantined:
    case master_state::connecting:
    case master_state::founding:
        return style::yellow;
    default:
        return style::red;
    }
}

std::string_view text_of(activity what) {
    switch (what) {
    case activity::starting:
        return "no quorum yet";
    case activity::waiting:
        return "waits for";
    case activity::working:
    case activity::writing:
        return "HAS";
    case activity::resting:
        return "rests";
    case activity::ended:
        return "ended";
    }
    return "";
}

std::string_view text_of(result what) {
    switch (what) {
    case result::nothing:
        return "-";
    case result::granted:
        return "granted";
    case result::contended:
        return "contended";
    case result::no_quorum:
        return "no quorum";
    case result::other:
        return "failed";
    }
    return "";
}

mark mark_of(redlock::vote vote) {
    switch (vote) {
    case redlock::vote::granted:
        return {'+', style::green};
    case redlock::vote::held:
        return {'#', style::cyan};
    case redlock::vote::owned_by_other:
        return {'?', style::red};
    case redlock::vote::absent:
        return {'-', style::dim};
    case redlock::vote::unreachable:
        return {'x', style::red};
    case redlock::vote::timed_out:
        return {'t', style::red};
    case redlock::vote::quarantined:
        return {'q', style::yellow};
    case redlock::vote::error:
    case redlock::vote::duplicate:
        return {'!', style::red};
    case redlock::vote::pending:
        return {'.', style::dim};
    }
    return {' ', style::plain};
}

} // namespace demo
