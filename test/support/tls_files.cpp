// Certificates by the command line tool of OpenSSL. Keys are on the P-256 curve: made in
// microseconds, where RSA would take a noticeable part of the test.
#include "tls_files.hpp"

#include <fstream>
#include <stdexcept>

namespace redlock::test {
namespace {

// What a certificate says of its use, by kind.
constexpr const char* kinds = R"(
[req]
distinguished_name = name
[name]
[authority]
subjectKeyIdentifier = hash
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
[server]
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
basicConstraints = CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost,IP:127.0.0.1
[client]
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
basicConstraints = CA:FALSE
extendedKeyUsage = clientAuth
)";

} // namespace

tls_files::tls_files() {
    const auto path = [this](const std::string& name) { return (dir_.path() / name).string(); };
    std::ofstream(path("kinds")) << kinds;
    // Without an issuer it signs itself.
    const auto make = [&](const std::string& name,
                          const std::string& kind,
                          const std::string& subject,
                          const std::string& issuer = {}) {
        std::vector<std::string> line{
            find_program("openssl").string(), "req", "-x509", "-newkey", "ec"};
        const auto add = [&](const std::string& option, const std::string& value) {
            line.insert(line.end(), {option, value});
        };
        add("-pkeyopt", "ec_paramgen_curve:P-256");
        add("-config", path("kinds"));
        add("-extensions", kind);
        add("-subj", "/CN=" + subject);
        add("-days", "1");
        add("-keyout", path(name + ".key"));
        add("-out", path(name + ".crt"));
        if (!issuer.empty()) {
            add("-CA", path(issuer + ".crt"));
            add("-CAkey", path(issuer + ".key"));
        }
        line.emplace_back("-nodes");
        const ended_program made = run_program(line, dir_.path());
        if (made.status != 0) {
            throw std::runtime_error("openssl failed: " + made.text);
        }
    };
    make("ca", "authority", "redlock test authority");
    make("server", "server", "localhost", "ca");
    make("client", "client", "redlock test client", "ca");
    make("other-ca", "authority", "unrelated authority");
    make("other-client", "client", "unrelated client", "other-ca");
}

} // namespace redlock::test
