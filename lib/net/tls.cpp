#include "tls.hpp"

#include <stdexcept>

namespace redlock::net {

#if REDLOCK_HAS_TLS

namespace ssl = boost::asio::ssl;

std::unique_ptr<tls_context> make_tls_context(const tls_options& options) {
    auto context = std::make_unique<ssl::context>(ssl::context::tls_client);
    const auto check =
        [](const boost::system::error_code& error, const char* what, const std::string& file) {
            if (error) {
                throw std::invalid_argument(
                    "redlock: tls: cannot use " + std::string(what) + " '" + file
                    + "': " + error.message());
            }
        };
    boost::system::error_code error;
    context->set_options(
        ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
    context->set_verify_mode(options.verify ? ssl::verify_peer : ssl::verify_none);
    if (options.ca_file.empty()) {
        context->set_default_verify_paths(error);
        check(error, "the system's authorities", "");
    } else {
        context->load_verify_file(options.ca_file, error);
        check(error, "ca_file", options.ca_file);
    }
    if (!options.certificate_file.empty()) {
        context->use_certificate_chain_file(options.certificate_file, error);
        check(error, "certificate_file", options.certificate_file);
        context->use_private_key_file(options.private_key_file, ssl::context::pem, error);
        check(error, "private_key_file", options.private_key_file);
    }
    return context;
}

std::string why_distrusted(const SSL* session, const std::string& name) {
    const long verdict = SSL_get_verify_result(session);
    if (SSL_get_verify_mode(session) == SSL_VERIFY_NONE || verdict == X509_V_OK) {
        return {};
    }
    // X509_V_ERR_UNSPECIFIED comes from the host name verification.
    return verdict == X509_V_ERR_UNSPECIFIED
               ? ": it does not name '" + name + "'"
               : std::string(": ") + X509_verify_cert_error_string(verdict);
}

#else

std::unique_ptr<tls_context> make_tls_context(const tls_options&) {
    throw std::invalid_argument(
        "redlock: a rediss:// master needs TLS, and this library was built with -Dtls=disabled");
}

#endif

} // namespace redlock::net
