#include "tls.hpp"

#include "settings_file.hpp"

#if REDLOCK_HAS_TLS
#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/error.hpp>
#include <openssl/err.h>
#include <openssl/sslerr.h>
#endif

#include <cstddef>
#include <stdexcept>

namespace redlock::net {

#if REDLOCK_HAS_TLS

namespace ssl = boost::asio::ssl;

std::shared_ptr<tls_context> tls_files::read() {
    constexpr std::array names{"tls.ca_file", "tls.certificate_file", "tls.private_key_file"};
    const std::array paths{
        &options_.ca_file, &options_.certificate_file, &options_.private_key_file};
    std::array<std::string, 3> texts;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        texts[i] = paths[i]->empty() ? std::string() : text_of_file(names[i], *paths[i]);
    }
    if (made_ && texts == texts_) {
        return made_;
    }
    auto context = std::make_shared<ssl::context>(ssl::context::tls_client);
    boost::system::error_code error;
    const auto check = [&](std::size_t file) {
        if (error) {
            throw unusable_file(
                names[file],
                paths[file]->empty() ? "that of the system" : *paths[file],
                error.message());
        }
    };
    context->set_options(
        ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
    context->set_verify_mode(options_.verify ? ssl::verify_peer : ssl::verify_none);
    options_.ca_file.empty()
        ? context->set_default_verify_paths(error)
        : context->add_certificate_authority(boost::asio::buffer(texts[0]), error);
    check(0);
    if (!options_.certificate_file.empty()) {
        context->use_certificate_chain(boost::asio::buffer(texts[1]), error);
        check(1);
        context->use_private_key(boost::asio::buffer(texts[2]), ssl::context::pem, error);
        check(2);
    }
    texts_ = std::move(texts);
    return made_ = std::move(context);
}

std::string why_distrusted(const SSL* session, const std::string& name) {
    const long verdict = SSL_get_verify_result(session);
    if (SSL_get_verify_mode(session) == SSL_VERIFY_NONE || verdict == X509_V_OK) {
        return {};
    }
    std::string why = std::string(": ") + X509_verify_cert_error_string(verdict);
    switch (verdict) {
    case X509_V_ERR_UNSPECIFIED: // of the host name verification
        return ": it does not name '" + name
               + "': connect by a name that it has, or give that in server_name "
                 "(--tls-server-name)";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return why + ": name the file of its authority in ca_file (--tls-ca-file)";
    default:
        return why;
    }
}

#else

std::shared_ptr<tls_context> tls_files::read() {
    throw std::invalid_argument(
        "redlock: a rediss:// master needs TLS, and this library was built with -Dtls=disabled");
}

#endif

std::string_view advice_on_tls([[maybe_unused]] const boost::system::error_code& error) noexcept {
#if REDLOCK_HAS_TLS
    if (error.category() != boost::asio::error::get_ssl_category()) {
        return {};
    }
    switch (ERR_GET_REASON(static_cast<unsigned long>(error.value()))) {
    case SSL_R_WRONG_VERSION_NUMBER: // a server without TLS has replied
    case SSL_R_HTTP_REQUEST:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
        return ": a port without TLS needs redis://";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE: // of TLS 1.2
        return ": the server may require a certificate of the client: certificate_file "
               "(--tls-certificate-file)";
    default:
        break;
    }
#endif
    return {};
}

} // namespace redlock::net
