// Order statistics.
#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>

namespace bench {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

} // namespace

spread spread_of(std::vector<double> values) {
    std::erase_if(values, [](double value) { return std::isnan(value); });
    if (values.empty()) {
        return {none, none, none};
    }
    std::sort(values.begin(), values.end());
    const auto middle = values.size() / 2;
    const double median =
        values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    return {median, values.front(), values.back()};
}

double percentile(std::vector<std::uint32_t>& samples, double rank) {
    if (samples.empty()) {
        return none;
    }
    const double position = std::ceil(rank * static_cast<double>(samples.size()));
    const auto index = std::clamp<std::size_t>(
        static_cast<std::size_t>(std::max(position, 1.0)) - 1, 0, samples.size() - 1);
    const auto at = std::next(samples.begin(), static_cast<std::ptrdiff_t>(index));
    std::nth_element(samples.begin(), at, samples.end());
    return *at;
}

spread ratio_of(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        ratios.push_back(a[i] / b[i]);
    }
    return spread_of(std::move(ratios));
}

} // namespace bench
