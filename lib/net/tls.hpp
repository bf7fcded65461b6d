// What TLS needs to know, where the library is built with it.

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

/// Reads the files. Throws `std::invalid_argument` with a sentence that names the file that is
/// wrong, or that the library was built without TLS.
std::unique_ptr<tls_context> make_tls_context(const tls_options& options);

} // namespace redlock::net
