// Everything a TLS test needs, made on the spot, valid for a day: an authority with a server
// certificate for `localhost` and 127.0.0.1 and a client certificate. For the cases that must fail
// there is a second, unrelated authority with a client certificate of its own.
#pragma once

#include "process.hpp"

namespace redlock::test {

class tls_files {
public:
    tls_files(); // throws std::runtime_error with the text of OpenSSL

    std::filesystem::path ca() const { return dir_.path() / "ca.crt"; }
    std::filesystem::path server_certificate() const { return dir_.path() / "server.crt"; }
    std::filesystem::path server_key() const { return dir_.path() / "server.key"; }
    std::filesystem::path client_certificate() const { return dir_.path() / "client.crt"; }
    std::filesystem::path client_key() const { return dir_.path() / "client.key"; }

    std::filesystem::path other_ca() const { return dir_.path() / "other-ca.crt"; }
    std::filesystem::path other_client_certificate() const {
        return dir_.path() / "other-client.crt";
    }
    std::filesystem::path other_client_key() const { return dir_.path() / "other-client.key"; }

private:
    temp_dir dir_{"redlock-tls-"};
};

} // namespace redlock::test
