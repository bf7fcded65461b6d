// Certificates by OpenSSL 3's own functions, so that no command line tool is needed. Keys are on
// the P-256 curve: made in microseconds, where RSA would take a noticeable part of the test.
#include "tls_files.hpp"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdio>
#include <stdexcept>

namespace redlock::test {
namespace {

struct deleter {
    void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const noexcept { X509_free(certificate); }
    void operator()(X509_EXTENSION* extension) const noexcept { X509_EXTENSION_free(extension); }
    void operator()(BIGNUM* number) const noexcept { BN_free(number); }
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
template <class T>
using owned = std::unique_ptr<T, deleter>;

struct identity {
    owned<EVP_PKEY> key;
    owned<X509> certificate;
};

enum class purpose { authority, server, client };

void require(bool condition, const char* what) {
    if (!condition) {
        std::array<char, 256> text{};
        ERR_error_string_n(ERR_get_error(), text.data(), text.size());
        throw std::runtime_error(std::string(what) + ": " + text.data());
    }
}

void add_extension(X509* certificate, X509* issuer, int nid, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    const owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value));
    require(extension && X509_add_ext(certificate, extension.get(), -1) == 1, "X509_add_ext");
}

void set_serial_number(X509* certificate) {
    constexpr int bits = 127; // at random: two certificates of one authority must differ in it
    const owned<BIGNUM> number(BN_new());
    require(
        number && BN_rand(number.get(), bits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1, "BN_rand");
    require(
        BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr,
        "BN_to_ASN1_INTEGER");
}

void set_name_and_dates(X509* certificate, const std::string& name) {
    constexpr long day_s = 24 * 60 * 60;
    constexpr long version_3 = 2; // counted from 0
    require(X509_set_version(certificate, version_3) == 1, "X509_set_version");
    require(
        X509_gmtime_adj(X509_getm_notBefore(certificate), -day_s) != nullptr
            && X509_gmtime_adj(X509_getm_notAfter(certificate), day_s) != nullptr,
        "X509_gmtime_adj");
    X509_NAME* subject = X509_get_subject_name(certificate);
    const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
    require(
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, text, -1, -1, 0) == 1,
        "X509_NAME_add_entry_by_txt");
}

// Without an issuer it signs itself.
identity make_identity(const std::string& name, purpose use, const identity* issuer) {
    identity result{owned<EVP_PKEY>(EVP_EC_gen("P-256")), owned<X509>(X509_new())};
    require(result.key && result.certificate, "EVP_EC_gen");
    X509* certificate = result.certificate.get();
    X509* issuer_certificate = issuer != nullptr ? issuer->certificate.get() : certificate;
    EVP_PKEY* issuer_key = issuer != nullptr ? issuer->key.get() : result.key.get();

    set_name_and_dates(certificate, name);
    set_serial_number(certificate);
    require(
        X509_set_issuer_name(certificate, X509_get_subject_name(issuer_certificate)) == 1
            && X509_set_pubkey(certificate, result.key.get()) == 1,
        "X509_set_pubkey");
    add_extension(certificate, issuer_certificate, NID_subject_key_identifier, "hash");
    if (use == purpose::authority) {
        add_extension(certificate, issuer_certificate, NID_basic_constraints, "critical,CA:TRUE");
        add_extension(
            certificate, issuer_certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
    } else {
        add_extension(certificate, issuer_certificate, NID_basic_constraints, "CA:FALSE");
        add_extension(certificate, issuer_certificate, NID_authority_key_identifier, "keyid");
        add_extension(
            certificate,
            issuer_certificate,
            NID_ext_key_usage,
            use == purpose::server ? "serverAuth" : "clientAuth");
    }
    if (use == purpose::server) {
        add_extension(
            certificate, issuer_certificate, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    }
    require(X509_sign(certificate, issuer_key, EVP_sha256()) > 0, "X509_sign");
    return result;
}

owned<std::FILE> open_for_writing(const std::filesystem::path& path) {
    owned<std::FILE> file(std::fopen(path.c_str(), "w"));
    if (!file) {
        throw std::runtime_error("cannot write " + path.string());
    }
    return file;
}

void write_certificate(const std::filesystem::path& path, const identity& who) {
    const auto file = open_for_writing(path);
    require(PEM_write_X509(file.get(), who.certificate.get()) == 1, "PEM_write_X509");
}

void write_key(const std::filesystem::path& path, const identity& who) {
    const auto file = open_for_writing(path);
    require(
        PEM_write_PrivateKey(file.get(), who.key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1,
        "PEM_write_PrivateKey");
}

} // namespace

tls_files::tls_files() {
    const identity authority = make_identity("redlock test authority", purpose::authority, nullptr);
    const identity server = make_identity("localhost", purpose::server, &authority);
    const identity client = make_identity("redlock test client", purpose::client, &authority);
    const identity other = make_identity("unrelated authority", purpose::authority, nullptr);
    const identity other_client = make_identity("unrelated client", purpose::client, &other);

    write_certificate(ca(), authority);
    write_certificate(server_certificate(), server);
    write_key(server_key(), server);
    write_certificate(client_certificate(), client);
    write_key(client_key(), client);
    write_certificate(other_ca(), other);
    write_certificate(other_client_certificate(), other_client);
    write_key(other_client_key(), other_client);
}

} // namespace redlock::test
