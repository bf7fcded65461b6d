#include "resp.hpp"

#include <hiredis/hiredis.h>
#include <hiredis/read.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace redlock::core {

namespace {

constexpr std::size_t length_bytes_max = 1 + 20 + 2; // mark, digits of 64 bits, end of line

// Writes "$42\r\n" and gives the end. Most lengths have one or two digits.
char* write_length(char* at, char mark, std::size_t length) {
    *at++ = mark;
    if (length < 10) {
        *at++ = static_cast<char>('0' + length);
    } else if (length < 100) {
        *at++ = static_cast<char>('0' + length / 10);
        *at++ = static_cast<char>('0' + length % 10);
    } else {
        at = std::to_chars(at, at + length_bytes_max, length).ptr;
    }
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

// hiredis hands each element to a builder as it is parsed, parents first. An element's text is
// copied to one arena, because the reader may move its buffer before the reply is complete;
// elements keep offsets until then, because the arena may move, too.
struct builder {
    struct element {
        reply value;
        std::size_t offset = 0;
        std::size_t length = 0;
    };
    std::vector<element> elements;
    std::vector<reply> replies;
    std::string arena;

    void clear() {
        elements.clear();
        replies.clear();
        arena.clear();
    }

    // hiredis wants an object back, not null, and gives it to children as their parent; we need
    // none.
    void* add(reply_type type, std::int64_t integer, std::string_view text) {
        element& added = elements.emplace_back();
        added.value.type = type;
        added.value.integer = integer;
        added.offset = arena.size();
        added.length = text.size();
        arena.append(text);
        return this;
    }

    const reply* finish() {
        replies.resize(elements.size());
        for (std::size_t i = 0; i < elements.size(); ++i) {
            replies[i] = elements[i].value;
            replies[i].text =
                std::string_view(arena).substr(elements[i].offset, elements[i].length);
        }
        replies.front().elements = std::span(replies).subspan(1);
        return &replies.front();
    }
};

builder& builder_of(const redisReadTask* task) {
    return *static_cast<builder*>(task->privdata);
}

void* create_string(const redisReadTask* task, char* text, std::size_t length) {
    const auto type = task->type == REDIS_REPLY_ERROR    ? reply_type::error
                      : task->type == REDIS_REPLY_STATUS ? reply_type::status
                                                         : reply_type::string;
    return builder_of(task).add(type, 0, {text, length});
}

// Its length is an int in hiredis 0.14 and a size_t in 1.x.
template <typename Length>
void* create_array(const redisReadTask* task, Length length) {
    return builder_of(task).add(reply_type::array, static_cast<std::int64_t>(length), {});
}

void* create_integer(const redisReadTask* task, long long value) {
    return builder_of(task).add(reply_type::integer, value, {});
}

void* create_nil(const redisReadTask* task) {
    return builder_of(task).add(reply_type::nil, 0, {});
}

void free_object(void*) {}

template <typename Length>
void set_create_array(void* (*&slot)(const redisReadTask*, Length)) {
    slot = &create_array<Length>;
}

// RESP3 types, which hiredis 1.x knows: never asked for (no HELLO 3 is sent), and without these a
// server that sends them anyway would crash the reader.
template <typename Functions>
void set_resp3(Functions& functions) {
    if constexpr (requires { functions.createDouble; }) {
        functions.createDouble =
            [](const redisReadTask* task, double, char* text, std::size_t length) -> void* {
            return builder_of(task).add(reply_type::string, 0, {text, length});
        };
        functions.createBool = [](const redisReadTask* task, int value) -> void* {
            return builder_of(task).add(reply_type::integer, value, {});
        };
    }
}

redisReplyObjectFunctions make_functions() {
    redisReplyObjectFunctions functions{};
    functions.createString = &create_string;
    set_create_array(functions.createArray);
    functions.createInteger = &create_integer;
    functions.createNil = &create_nil;
    functions.freeObject = &free_object;
    set_resp3(functions);
    return functions;
}

std::string too_large() {
    return "malformed reply: larger than " + std::to_string(reply_reader::reply_bytes_max)
           + " bytes";
}

} // namespace

void append_command(std::string& out, std::initializer_list<std::string_view> arguments) {
    std::size_t room = length_bytes_max;
    for (const std::string_view argument : arguments) {
        room += length_bytes_max + argument.size() + 2;
    }
    const std::size_t before = out.size();
    out.resize(before + room);
    char* at = write_length(out.data() + before, '*', arguments.size());
    for (const std::string_view argument : arguments) {
        at = write_length(at, '$', argument.size());
        at = std::copy(argument.begin(), argument.end(), at);
        *at++ = '\r';
        *at++ = '\n';
    }
    out.resize(static_cast<std::size_t>(at - out.data()));
}

struct reply_reader::impl {
    struct deleter {
        void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
    };
    redisReplyObjectFunctions functions = make_functions();
    builder building;
    std::unique_ptr<redisReader, deleter> reader;
    std::string_view fresh; // what hiredis has not been given; it has nothing unread meanwhile
    reply line;

    void restart() {
        reader.reset(redisReaderCreateWithFunctions(&functions));
        if (!reader) {
            throw std::bad_alloc();
        }
        reader->privdata = &building;
        building.clear();
        fresh = {};
    }
    bool idle() const noexcept { return reader->ridx == -1 && unread() == 0; }
    std::size_t unread() const noexcept { return reader->len - reader->pos; }
};

reply_reader::reply_reader() : impl_(std::make_unique<impl>()) {
    impl_->restart();
}
reply_reader::~reply_reader() = default;

void reply_reader::clear() {
    impl_->restart();
    error_.clear();
}

bool reply_reader::feed(std::span<const char> bytes) {
    if (!error_.empty()) {
        return false;
    }
    if (impl_->idle() && impl_->fresh.empty()) {
        impl_->fresh = {bytes.data(), bytes.size()};
        return true;
    }
    return give_to_hiredis(std::exchange(impl_->fresh, {}))
           && give_to_hiredis({bytes.data(), bytes.size()});
}

bool reply_reader::give_to_hiredis(std::string_view bytes) {
    if (redisReaderFeed(impl_->reader.get(), bytes.data(), bytes.size()) != REDIS_OK) {
        error_ = impl_->reader->errstr;
        return false;
    }
    return true;
}

// Nearly all replies are one short line: "+OK", ":1", "$-1", an error. Those are read where they
// lie; everything else, and what is cut off at the end, is hiredis' business.
const reply* reply_reader::next_line() {
    std::string_view& fresh = impl_->fresh;
    const std::size_t end = fresh.find('\n');
    if (end == std::string_view::npos || end < 2 || fresh[end - 1] != '\r'
        || end - 2 > reply_bytes_max) {
        return nullptr;
    }
    const char mark = fresh.front();
    const std::string_view line = fresh.substr(1, end - 2);
    reply& found = impl_->line;
    found = {};
    if (mark == '+' || mark == '-') {
        found.type = mark == '+' ? reply_type::status : reply_type::error;
        found.text = line;
    } else if (mark == ':') {
        found.type = reply_type::integer;
        // No number is written "007" or "-0"; hiredis says so, and so it must wherever the stream
        // is cut.
        const std::string_view digits = line.substr(line.starts_with('-') ? 1 : 0);
        if (digits.starts_with('0') && line.size() > 1) {
            return nullptr;
        }
        const auto [stop, error] =
            std::from_chars(line.data(), line.data() + line.size(), found.integer);
        if (error != std::errc() || stop != line.data() + line.size()) {
            return nullptr;
        }
    } else if (mark != '$' || line != "-1") {
        return nullptr;
    }
    fresh.remove_prefix(end + 1);
    return &found;
}

const reply* reply_reader::next() {
    if (!error_.empty()) {
        return nullptr;
    }
    if (!impl_->fresh.empty()) {
        if (const reply* const line = next_line()) {
            return line;
        }
        if (!give_to_hiredis(std::exchange(impl_->fresh, {}))) {
            return nullptr;
        }
    }
    // A reply that is still incomplete when this is called again has kept its first elements here.
    if (impl_->reader->ridx == -1) {
        impl_->building.clear();
    }
    void* root = nullptr;
    if (redisReaderGetReply(impl_->reader.get(), &root) != REDIS_OK) {
        error_ = "malformed reply: " + std::string(impl_->reader->errstr);
        return nullptr;
    }
    if (root == nullptr) {
        const builder& partial = impl_->building;
        if (impl_->unread() + partial.arena.size() + 4 * partial.elements.size()
            > reply_bytes_max) {
            error_ = too_large();
        }
        return nullptr;
    }
    if (impl_->building.arena.size() > reply_bytes_max) {
        error_ = too_large();
        return nullptr;
    }
    return impl_->building.finish();
}

} // namespace redlock::core
