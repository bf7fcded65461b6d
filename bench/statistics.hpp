// Percentiles of samples, and the median and spread of what several rounds measured.
#pragma once

#include <cstdint>
#include <vector>

namespace bench {

// What several rounds measured. All members are NaN for no rounds at all.
struct spread {
    double median = 0;
    double min = 0;
    double max = 0;
};

// Rounds that had no value (NaN) are left out.
spread spread_of(std::vector<double> values);

// The sample below which the share `rank` (0 to 1) of all samples lies, by the nearest-rank method.
// NaN if there is none. Reorders the samples.
double percentile(std::vector<std::uint32_t>& samples, double rank);

// Spread of a / b per round. Pairing cancels changes of the machine between rounds.
spread ratio_of(const std::vector<double>& a, const std::vector<double>& b);

} // namespace bench
