// The reply decoder: the same bytes give the same replies, wherever the network cuts them.

#include "core/bytes/resp.hpp"
#include "input.hpp"
#include "require.hpp"

#include <string>
#include <vector>

using fuzz::require;
using redlock::core::reply;
using redlock::core::reply_reader;
using redlock::core::reply_type;

namespace {

struct decoded {
    std::vector<std::string> replies; // in words
    std::string error;
};

// Goes over the elements of one array and gives where they end: nested arrays are flattened.
std::size_t end_of_elements(std::span<const reply> flat, std::size_t at, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        require(at < flat.size(), "an array has the elements that it says");
        const reply& one = flat[at++];
        if (one.type == reply_type::array) {
            at = end_of_elements(flat, at, one.integer);
        }
    }
    return at;
}

void append_words(std::string& out, const reply& one) {
    out += std::to_string(static_cast<int>(one.type)) + " " + std::to_string(one.integer) + " "
           + std::string(one.text) + "\n";
}

std::string in_words(const reply& one) {
    std::string out;
    append_words(out, one);
    if (one.type == reply_type::array) {
        const std::size_t end = end_of_elements(one.elements, 0, one.integer);
        require(end == one.elements.size(), "an array has no more elements than it says");
    } else {
        require(one.elements.empty(), "only an array has elements");
    }
    std::size_t texts = one.text.size();
    for (const reply& element : one.elements) {
        append_words(out, element);
        texts += element.text.size();
    }
    require(texts <= reply_reader::reply_bytes_max, "no reply is larger than the largest");
    return out;
}

void read_all(reply_reader& reader, decoded& out) {
    while (const reply* const one = reader.next()) {
        require(reader.error().empty(), "a reply does not come with an error");
        out.replies.push_back(in_words(*one));
    }
    out.error = reader.error();
    require(reader.next() == nullptr, "there is no reply after the last one");
}

// The sizes of the pieces repeat; a size of 0 is a piece of no bytes. Each piece has memory of its
// own, which is gone when the next one comes.
decoded
decode(reply_reader& reader, std::string_view bytes, const std::vector<std::size_t>& sizes) {
    decoded out;
    for (std::size_t i = 0; !bytes.empty() && out.error.empty(); ++i) {
        const std::string_view taken = bytes.substr(0, sizes[i % sizes.size()]);
        bytes.remove_prefix(taken.size());
        const std::vector<char> piece(taken.begin(), taken.end());
        const bool accepted = reader.feed(piece);
        require(accepted == reader.error().empty(), "a piece is refused with an error");
        read_all(reader, out);
    }
    return out;
}

bool too_large(const decoded& one) {
    return one.error.find("larger than") != std::string::npos;
}

// How much of a large reply has come before it is refused depends on where the cuts are.
void require_same(const decoded& a, const decoded& b) {
    if (too_large(a) || too_large(b)) {
        const std::size_t both = std::min(a.replies.size(), b.replies.size());
        require(
            std::equal(a.replies.begin(), a.replies.begin() + both, b.replies.begin()),
            "replies before one that is too large are the same");
        return;
    }
    require(a.replies == b.replies, "the replies are the same wherever the stream is cut");
    require(a.error == b.error, "the error is the same wherever the stream is cut");
}

// A short input can be a long stream: a middle that is repeated reaches the limits.
std::string stream_of(fuzz::input& in, bool& is_long) {
    const std::size_t times = in.flag() ? in.word() : 1;
    const std::string_view head = in.text(in.byte());
    const std::string_view middle = in.text(in.byte());
    std::string out(head);
    for (std::size_t i = 0; i < times && out.size() < 2 * reply_reader::reply_bytes_max; ++i) {
        out += middle;
    }
    out += in.rest();
    is_long = out.size() > 8192;
    return out;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::input in(data, size);
    std::vector<std::size_t> cuts(1 + in.below(8));
    for (std::size_t& cut : cuts) {
        cut = in.byte();
    }
    cuts.push_back(1); // the stream comes to its end
    bool is_long = false;
    const std::string bytes = stream_of(in, is_long);
    if (is_long) {
        for (std::size_t& cut : cuts) {
            cut = 1 + 256 * cut;
        }
    }

    reply_reader reader;
    const decoded whole = decode(reader, bytes, {bytes.size()});
    if (too_large(whole)) {
        require(
            bytes.size() > reply_reader::reply_bytes_max / 2, "only what is large is too large");
    }

    // The same reader, so that it also shows that nothing is left after `clear`.
    reader.clear();
    require_same(whole, decode(reader, bytes, cuts));
    if (!is_long) {
        reader.clear();
        require_same(whole, decode(reader, bytes, {1}));
    }

    reader.clear();
    const std::vector<char> first(bytes.begin(), bytes.begin() + bytes.size() / 2);
    const std::vector<char> second(bytes.begin() + bytes.size() / 2, bytes.end());
    decoded unread; // both halves are there before any of it is read
    if (reader.feed(first)) {
        reader.feed(second);
    }
    read_all(reader, unread);
    require_same(whole, unread);

    reader.clear();
    const decoded sound = decode(reader, "*2\r\n:1\r\n$2\r\nab\r\n+OK\r\n", {100});
    require(
        sound.error.empty() && sound.replies.size() == 2 && sound.replies[1] == "0 0 OK\n",
        "after `clear` it works again");
    return 0;
}
