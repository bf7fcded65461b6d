#include "toml.hpp"

#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace cli {
namespace {

constexpr std::string_view key_letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

class reader {
public:
    explicit reader(std::string text) : text_(std::move(text)) {}

    std::vector<toml_entry> all() {
        std::vector<toml_entry> out;
        std::string section;
        for (skip(true); !at_end(); skip(true)) {
            if (take('[')) {
                section = key();
                expect(']', "a section ends with ]");
            } else {
                toml_entry one{section, key(), {}, line_};
                expect('=', "= and a value are missing");
                name_ = one.key;
                skip(false);
                value(one.values);
                out.push_back(std::move(one));
            }
            skip(false);
            if (!at_end() && !take('\n')) {
                fail("one value per line; put text in quotes");
            }
            name_.clear();
        }
        return out;
    }

private:
    bool at_end() const noexcept { return at_ == text_.size(); }
    char next() const noexcept { return at_end() ? '\0' : text_[at_]; }

    [[noreturn]] void fail(std::string_view why) const {
        // Shows the name and never a value or a part of one, which may be a password.
        throw std::invalid_argument(fmt::format(
            "line {}: {}{}{}", line_, printable(name_), name_.empty() ? "" : ": ", why));
    }

    bool take(char c) {
        if (at_end() || text_[at_] != c) {
            return false;
        }
        line_ += c == '\n' ? 1U : 0U;
        ++at_;
        return true;
    }

    void expect(char c, std::string_view why) {
        skip(false);
        if (!take(c)) {
            fail(why);
        }
    }

    void skip(bool lines) {
        while (take(' ') || take('\t') || take('\r') || (lines && take('\n'))) {
        }
        if (next() == '#') {
            at_ = std::min(text_.find('\n', at_), text_.size());
            if (lines) {
                skip(true);
            }
        }
    }

    std::string word() {
        const std::size_t from = at_;
        at_ = std::min(text_.find_first_not_of(key_letters, at_), text_.size());
        return text_.substr(from, at_ - from);
    }

    std::string key() {
        skip(false);
        std::string out = next() == '"' || next() == '\'' ? quoted() : word();
        if (out.empty()) {
            fail("a name is missing");
        }
        return out;
    }

    std::string quoted() {
        const char quote = next();
        take(quote);
        std::string out;
        while (!take(quote)) {
            if (at_end() || next() == '\n') {
                fail("a quote is not closed");
            }
            if (quote == '"' && take('\\')) {
                out += escaped();
            } else {
                out += text_[at_++];
            }
        }
        return out;
    }

    char escaped() {
        constexpr std::string_view names = "\"\\nt";
        constexpr std::string_view meant = "\"\\\n\t";
        const std::size_t which = names.find(next());
        if (at_end() || which == std::string_view::npos) {
            fail(R"(after \ come ", \, n or t; text in 'single quotes' is taken as it stands)");
        }
        ++at_;
        return meant[which];
    }

    void value(std::vector<std::string>& into) {
        if (next() == '"' || next() == '\'') {
            into.push_back(quoted());
        } else if (take('[')) {
            for (skip(true); !take(']'); skip(true)) {
                value(into);
                skip(true);
                if (!take(',') && next() != ']') {
                    fail("separate the values of an array by commas, and end it with ]");
                }
            }
        } else {
            bare(into);
        }
    }

    void bare(std::vector<std::string>& into) {
        const std::size_t from = at_;
        at_ = std::min(text_.find_first_of(" \t\r\n,]#", at_), text_.size());
        std::string out = text_.substr(from, at_ - from);
        const bool number =
            !out.empty() && out.find_first_not_of("0123456789.") == std::string::npos;
        if (!number && out != "true" && out != "false") {
            fail("put text and durations in quotes");
        }
        into.push_back(std::move(out));
    }

    std::string text_;
    std::string name_; // of the value that is read
    std::size_t at_ = 0;
    std::size_t line_ = 1;
};

} // namespace

std::vector<toml_entry> read_toml(std::string text) {
    return reader(std::move(text)).all();
}

} // namespace cli
