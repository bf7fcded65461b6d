// The TLS context, and why a certificate was refused, if the library is built with TLS.

#pragma once

#include <redlock/config.hpp>

#include <boost/system/error_code.hpp>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#if REDLOCK_HAS_TLS
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <openssl/ssl.h>
#endif

namespace redlock::net {

#if REDLOCK_HAS_TLS
using tls_context = boost::asio::ssl::context;
#else
struct tls_context {};
#endif

/// Makes the contexts of new connections from files that may be replaced at any time.
class tls_files {
public:
    explicit tls_files(tls_options options) : options_(std::move(options)) {}

    /// Returns a context made of the files as they are now. Throws `unusable_file`, or
    /// `std::invalid_argument` if the library was built without TLS.
    std::shared_ptr<tls_context> read();

private:
    tls_options options_;
    std::array<std::string, 3> texts_; // of which `made_` was made
    std::shared_ptr<tls_context> made_;
};

/// What to change after an error of a TLS connection, to be appended to it; empty if the error
/// itself is enough.
std::string_view advice_on_tls(const boost::system::error_code& error) noexcept;

/// Returns the name or address that the certificate of a master has to show.
inline const std::string& tls_name_of(const endpoint& master, const tls_options& options) {
    return options.server_name.empty() ? master.host : options.server_name;
}

#if REDLOCK_HAS_TLS
/// Why the certificate of the server was refused, to be appended to the error of the handshake: the
/// error says only that it was. Empty if it was not. `name`: what it should name.
std::string why_distrusted(const SSL* session, const std::string& name);
#endif

} // namespace redlock::net
