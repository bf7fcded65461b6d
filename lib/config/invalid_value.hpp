// The first invalid value of a configuration or of the arguments of an acquire, in parts: the tool
// makes messages of them in its own terms.

#pragma once

#include <redlock/config.hpp>

#include <boost/assert/source_location.hpp>
#include <boost/system/result.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// Value or limit: none, a duration, an integer, a number or a text.
using setting_value =
    std::variant<std::monostate, std::chrono::milliseconds, std::int64_t, double, std::string>;

/// An invalid value and the allowed range. Never contains a password or a secret.
struct invalid_value {
    /// Name of the member, such as "max_ttl", "masters[1].port" or "tls.private_key_file"; or
    /// "resource" or "secret".
    std::string field;
    setting_value value;   ///< the value, or its size if the size is not allowed
    std::string unit;      ///< unit of a size, such as "bytes"; empty: the value is not a size
    setting_value minimum; ///< smallest allowed value; none: no lower limit
    setting_value maximum; ///< largest allowed value; none: no upper limit

    /// Rule that the value must meet, in addition to the range if there is one.
    std::string rule;
};

/// Formats the value as one sentence: "max_ttl is 5 ms; allowed: 10 ms to 86400000 ms".
std::string to_string(const invalid_value&);

/// No value if everything is valid, otherwise the first error. `value()` throws
/// `std::invalid_argument` with the text.
using validation = boost::system::result<void, invalid_value>;

/// Called by `validation::value`.
[[noreturn]] void throw_exception_from_error(const invalid_value&, const boost::source_location&);

/// Checks what `redlock::validate` does.
validation check(const config& config);
validation check(const acquire_options& options, const config& config);

/// Returns sentences about a valid configuration that is probably a mistake: an even number of
/// masters, TLS settings without a `rediss://` master, no `quarantine`, or a large
/// `master_timeout`.
std::vector<std::string> warnings(const config& config);

/// Maximum length of a resource name, in bytes.
inline constexpr std::size_t resource_name_max = 1024;

/// Checks the name of a resource: 1 to `resource_name_max` bytes of any value.
validation check_resource(std::string_view resource);

/// Checks the format of a lock's secret: 40 lowercase hexadecimal digits.
validation check_secret(std::string_view secret);

/// Returns the warning that `config::tls` is set, but no master uses TLS; empty if that is not so.
std::string_view unused_tls(const config& config) noexcept;

}}} // namespace redlock::REDLOCK_ABI::detail
