// The TLS context, and why a certificate was refused, if the library is built with TLS.

#pragma once

#include <redlock/config.hpp>

#include <memory>
#include <string>

#if REDLOCK_HAS_TLS
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/system/error_code.hpp>
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

/// Returns the name or address that the certificate of a master has to show.
inline const std::string& tls_name_of(const endpoint& master, const tls_options& options) {
    return options.server_name.empty() ? master.host : options.server_name;
}

#if REDLOCK_HAS_TLS
/// Has the certificate of the server verified against its name or address, if it is verified at
/// all, and sends the name to the server.
template <typename Stream>
void expect_server(boost::asio::ssl::stream<Stream>& secure, const std::string& name) {
    boost::system::error_code no_address;
    boost::asio::ip::make_address(name, no_address);
    if (no_address) { // SNI is for names only
        SSL_set_tlsext_host_name(secure.native_handle(), name.c_str());
    }
    boost::system::error_code ignored; // it cannot fail
    secure.set_verify_callback(boost::asio::ssl::host_name_verification(name), ignored);
}

/// Why the certificate of the server was refused, to be appended to the error of the handshake: the
/// error says only that it was. Empty if it was not. `name`: what it should name.
std::string why_distrusted(const SSL* session, const std::string& name);
#endif

} // namespace redlock::net
