#include "labels.hpp"

namespace redlock::soak {

char sign_of(vote what) {
    switch (what) {
    case vote::granted:
        return '+';
    case vote::held:
        return '#';
    case vote::owned_by_other:
        return '?';
    case vote::absent:
        return '-';
    case vote::unreachable:
        return 'x';
    case vote::timed_out:
        return 't';
    case vote::quarantined:
        return 'q';
    case vote::error:
    case vote::duplicate:
        return '!';
    case vote::pending:
        return '.';
    }
    return ' ';
}

style colour_of(char sign) {
    switch (sign) {
    case '+':
        return style::green;
    case '#':
        return style::cyan;
    case 'q':
        return style::yellow;
    case '?':
    case 'x':
    case 't':
    case '!':
        return style::red;
    default:
        return style::dim;
    }
}

style colour_of(master_state state) {
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

std::string_view text_of(entry what) {
    switch (what) {
    case entry::none:
        return "starts";
    case entry::asked:
    case entry::failed:
        return "waits";
    case entry::acquired:
    case entry::believed:
        return "HAS THE LOCK";
    case entry::written:
        return "has written";
    case entry::stale:
        return "refused by the store";
    case entry::wronged:
        return "WRONGLY refused";
    case entry::lost:
        return "has lost the lock";
    case entry::left:
        return "rests";
    }
    return "";
}

} // namespace redlock::soak
