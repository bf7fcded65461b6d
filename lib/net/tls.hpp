// The TLS context, and why a certificate was refused, if the library is built with TLS.

#pragma once

#include <redlock/config.hpp>

#include <memory>
#include <string>

#if REDLOCK_HAS_TLS
#include <boost/asio/ssl/context.hpp>
#include <openssl/ssl.h>
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

#if REDLOCK_HAS_TLS
/// Why the certificate of the server was refused, to be appended to the error of the handshake: the
/// error says only that it was. Empty if it was not. `name`: what it should name.
std::string why_distrusted(const SSL* session, const std::string& name);
#endif

} // namespace redlock::net
