// Samples in the text exposition format 0.0.4.

#pragma once

#include <redlock/metrics.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// Writes the samples of one family that belong to one manager.
class prometheus_writer {
public:
    /// `quorum` is the name of the manager's quorum.
    prometheus_writer(std::string& out, std::string_view family, std::string_view quorum)
        : out_(out),
          family_(family),
          quorum_(label("quorum", quorum)) {}

    static std::string label(std::string_view name, std::string_view value) {
        return fmt::format("{}=\"{}\"", name, escaped(value));
    }

    /// Labels are in their final form, separated by commas.
    template <typename Number>
    void sample(Number value, std::string_view labels = {}, std::string_view suffix = {}) {
        fmt::format_to(
            std::back_inserter(out_),
            "{}{}{{{}{}{}}} {}\n",
            family_,
            suffix,
            quorum_,
            labels.empty() ? "" : ",",
            labels,
            +value); // of a bool 0 or 1
    }
    template <typename Number, typename Period>
    void sample(
        std::chrono::duration<Number, Period> time,
        std::string_view labels = {},
        std::string_view suffix = {}) {
        sample(seconds(time), labels, suffix);
    }

    void sample(const histogram& times, const std::string& labels = {}) {
        const std::string before = labels.empty() ? "" : labels + ",";
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < histogram::bounds.size(); ++i) {
            sum += times.counts()[i];
            const double bound = seconds(histogram::bounds[i]);
            sample(sum, fmt::format("{}le=\"{}\"", before, bound), "_bucket");
        }
        sample(times.count(), before + "le=\"+Inf\"", "_bucket");
        sample(times.sum(), labels, "_sum");
        sample(times.count(), labels, "_count");
    }

private:
    // Some values come from the network, and a value that is not UTF-8 would make the whole page
    // invalid.
    static std::string escaped(std::string_view text) {
        std::string out;
        for (const char c : text) {
            const auto byte = static_cast<unsigned char>(c);
            if (c == '"' || c == '\\') {
                out += '\\';
                out += c;
            } else if (c == '\n') {
                out += "\\n";
            } else if (byte < 0x20 || byte > 0x7e) {
                fmt::format_to(std::back_inserter(out), "\\\\x{:02x}", byte);
            } else {
                out += c;
            }
        }
        return out;
    }
    static double seconds(std::chrono::nanoseconds time) {
        return std::chrono::duration<double>(time).count();
    }

    std::string& out_;
    std::string_view family_;
    std::string quorum_;
};

}}} // namespace redlock::REDLOCK_ABI::detail
