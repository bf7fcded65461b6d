#include "resp.hpp"

#include <hiredis/hiredis.h>
#include <hiredis/read.h>

#include <algorithm>
#include <new>
#include <utility>

namespace redlock::core {

namespace {

// hiredis passes each element to a builder as it is parsed, parents first. The text of an element
// is copied to one arena, because the reader may move its buffer before the reply is complete.
// Until then only its end is kept, because the arena may move as well.
struct builder {
    std::vector<reply> elements;
    std::vector<std::size_t> ends; // of their texts
    std::string arena;

    void clear() {
        elements.clear();
        ends.clear();
        arena.clear();
    }

    const reply* finish() {
        std::size_t from = 0;
        for (std::size_t i = 0; i < elements.size(); ++i) {
            elements[i].text = std::string_view(arena).substr(from, ends[i] - from);
            from = ends[i];
        }
        elements.front().elements = std::span(elements).subspan(1);
        return &elements.front();
    }
};

// hiredis needs a non-null object, which it passes to children as their parent. It is not used.
void* add(const redisReadTask* task, reply_type type, std::int64_t integer, std::string_view text) {
    builder& into = *static_cast<builder*>(task->privdata);
    into.elements.push_back({type, integer, {}, {}});
    into.arena.append(text);
    into.ends.push_back(into.arena.size());
    return &into;
}

void* add_text(const redisReadTask* task, char* text, std::size_t length) {
    const auto type = task->type == REDIS_REPLY_ERROR    ? reply_type::error
                      : task->type == REDIS_REPLY_STATUS ? reply_type::status
                                                         : reply_type::string;
    return add(task, type, 0, {text, length});
}

// hiredis 0.14 gives the length of an array as an int, 1.x as a size_t, and knows the types of
// RESP3. These are never requested (no HELLO 3 is sent). Without their functions, a server that
// sends them anyway would crash the reader.
template <typename Functions>
Functions make_functions() {
    Functions out{};
    out.createString = &add_text;
    out.createArray = [](const redisReadTask* task, auto length) {
        return add(task, reply_type::array, static_cast<std::int64_t>(length), {});
    };
    out.createInteger = [](const redisReadTask* task, long long value) {
        return add(task, reply_type::integer, value, {});
    };
    out.createNil = [](const redisReadTask* task) { return add(task, reply_type::nil, 0, {}); };
    out.freeObject = [](void*) {};
    if constexpr (requires { out.createDouble; }) {
        out.createDouble = [](const redisReadTask* task, double, char* text, std::size_t length) {
            return add(task, reply_type::string, 0, {text, length});
        };
        out.createBool = [](const redisReadTask* task, int value) {
            return add(task, reply_type::integer, value, {});
        };
    }
    return out;
}

// Replies that are parsed in place: "+OK", ":1", "$-1", an error, a string, and "*3" followed by
// numbers.
// Each function returns the position after the reply, or null for an incomplete, rare or invalid
// one, which hiredis parses.

bool ends_line(const char* at, const char* end) noexcept {
    return end - at >= 2 && at[0] == '\r' && at[1] == '\n';
}

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

// Adds the digits at `at`, up to the end of the line, to a value of 0. "007" is not a number:
// hiredis refuses it, and so must this, wherever the stream is cut.
inline const char* read_digits(const char* at, const char* end, std::uint64_t& value) noexcept {
    const char* const digits = at;
    const char* const most =
        digits + std::min<std::ptrdiff_t>(18, end - digits); // more may not fit
    for (; at < most && is_digit(*at); ++at) {
        value = 10 * value + static_cast<std::uint64_t>(*at - '0');
    }
    const bool odd = at == digits || (*digits == '0' && at - digits > 1);
    return odd || !ends_line(at, end) ? nullptr : at + 2;
}

const char* read_number(const char* at, const char* end, reply& into) noexcept {
    if (end - at < 4 || *at != ':') { // the shortest is ":0"
        return nullptr;
    }
    const bool negative = *++at == '-';
    at += negative ? 1 : 0;
    std::uint64_t digits = 0;
    const char* const rest = read_digits(at, end, digits);
    if (rest == nullptr || (negative && *at == '0')) { // "-0" is not a number either
        return nullptr;
    }
    const auto value = static_cast<std::int64_t>(digits);
    into = {reply_type::integer, negative ? -value : value, {}, {}};
    return rest;
}

// "3\r\nabc\r\n", after its mark.
const char* read_string(const char* at, const char* end, reply& into) noexcept {
    std::uint64_t length = 0;
    const char* const text = read_digits(at, end, length);
    if (text == nullptr || length > reply_reader::reply_bytes_max
        || static_cast<std::size_t>(end - text) < length || !ends_line(text + length, end)) {
        return nullptr;
    }
    into = {reply_type::string, 0, {text, length}, {}};
    return text + length + 2;
}

const char* read_line(const char* at, const char* end, reply& into) noexcept {
    static constexpr std::string_view nil = "$-1\r\n";
    switch (*at) {
    case ':':
        return read_number(at, end, into);
    case '+':
    case '-': {
        const std::string_view rest(at, static_cast<std::size_t>(end - at));
        const std::size_t stop = rest.find('\n');
        if (stop == std::string_view::npos || rest[stop - 1] != '\r'
            || stop - 2 > reply_reader::reply_bytes_max) {
            return nullptr;
        }
        into = {*at == '+' ? reply_type::status : reply_type::error, 0, {}, {}};
        into.text = rest.substr(1, stop - 2);
        return at + stop + 1;
    }
    case '$':
        if (!std::string_view(at, static_cast<std::size_t>(end - at)).starts_with(nil)) {
            return read_string(at + 1, end, into);
        }
        into = {reply_type::nil, 0, {}, {}};
        return at + nil.size();
    default:
        return nullptr;
    }
}

// The number in "*3\r\n", and its end; null for anything else, 0, or more than `elements_max`.
constexpr std::size_t elements_max = 150; // the reply for 64 locks that are all held has 130
const char* read_count(const char* at, const char* end, std::uint64_t& count) noexcept {
    const char* const rest = *at == '*' ? read_digits(at + 1, end, count) : nullptr;
    return rest != nullptr && count > 0 && count <= elements_max ? rest : nullptr;
}

} // namespace

struct reply_reader::impl {
    struct deleter {
        void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
    };
    redisReplyObjectFunctions functions = make_functions<redisReplyObjectFunctions>();
    builder building;
    std::unique_ptr<redisReader, deleter> reader;

    void restart() {
        reader.reset(redisReaderCreateWithFunctions(&functions));
        if (!reader) {
            throw std::bad_alloc();
        }
        reader->privdata = &building;
        building.clear();
    }
    bool idle() const noexcept { return reader->ridx == -1 && unread() == 0; }
    std::size_t unread() const noexcept { return reader->len - reader->pos; }
};

reply_reader::reply_reader(std::size_t largest)
    : largest_(largest),
      impl_(std::make_unique<impl>()) {
    impl_->restart();
}
reply_reader::~reply_reader() = default;

void reply_reader::clear() {
    impl_->restart();
    fresh_ = {};
    begun_ = false;
    error_.clear();
}

bool reply_reader::feed(std::span<const char> bytes) {
    if (!error_.empty()) {
        return false;
    }
    if (!begun_ && fresh_.empty()) {
        fresh_ = {bytes.data(), bytes.size()};
        return true;
    }
    return give_to_hiredis(std::exchange(fresh_, {}))
           && give_to_hiredis({bytes.data(), bytes.size()});
}

bool reply_reader::give_to_hiredis(std::string_view bytes) {
    begun_ = true;
    if (redisReaderFeed(impl_->reader.get(), bytes.data(), bytes.size()) != REDIS_OK) {
        error_ = impl_->reader->errstr;
        return false;
    }
    return true;
}

const reply* reply_reader::next_in_place() {
    const char* const end = fresh_.data() + fresh_.size();
    const char* at = fresh_.data();
    std::uint64_t count = 0;
    if (const char* const first = read_count(at, end, count)) {
        at = first;
        if (elements_.size() < count) {
            elements_.resize(count);
        }
        for (std::size_t i = 0; at != nullptr && i < count; ++i) {
            at = read_number(at, end, elements_[i]);
        }
        found_ = {reply_type::array, static_cast<std::int64_t>(count), {}, {}};
        found_.elements = std::span(elements_).first(count);
    } else {
        at = read_line(at, end, found_);
    }
    if (at == nullptr) {
        return nullptr;
    }
    fresh_.remove_prefix(static_cast<std::size_t>(at - fresh_.data()));
    return &found_;
}

const reply* reply_reader::next() {
    if (!error_.empty()) {
        return nullptr;
    }
    if (!fresh_.empty()) {
        if (const reply* const found = next_in_place()) {
            return found;
        }
        if (!give_to_hiredis(std::exchange(fresh_, {}))) {
            return nullptr;
        }
    }
    return begun_ ? next_of_hiredis() : nullptr;
}

const reply* reply_reader::next_of_hiredis() {
    // If a reply is still incomplete at the next call, its first elements are kept here.
    if (impl_->reader->ridx == -1) {
        impl_->building.clear();
    }
    void* root = nullptr;
    if (redisReaderGetReply(impl_->reader.get(), &root) != REDIS_OK) {
        error_ = "malformed reply: " + std::string(impl_->reader->errstr);
        return nullptr;
    }
    begun_ = !impl_->idle();
    builder& building = impl_->building;
    const std::size_t unfinished =
        root == nullptr ? impl_->unread() + 4 * building.elements.size() : 0;
    if (building.arena.size() + unfinished > largest_) {
        error_ = "malformed reply: larger than " + std::to_string(largest_) + " bytes";
        return nullptr;
    }
    return root == nullptr ? nullptr : building.finish();
}

} // namespace redlock::core
