// The TLS context, if the library is built with TLS.

#pragma once

#include <redlock/config.hpp>

#include <memory>

#if REDLOCK_HAS_TLS
#include <boost/asio/ssl/context.hpp>
#endif

namespace redlock::net {

#if REDLOCK_HAS_TLS
using tls_context = boost::asio::ssl::context;
#else
struct tls_context {};
#endif

/// Reads the files. Throws `std::invalid_argument` with the name of the invalid file, or if the
/// library was built without TLS.
std::unique_ptr<tls_context> make_tls_context(const tls_options& options);

} // namespace redlock::net
