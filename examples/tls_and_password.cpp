// A lock on masters that accept only TLS, as a user with a password.
//
//     tls_and_password ca.crt USER PASSWORD-FILE rediss://localhost:7101 rediss://localhost:7102

#include <redlock/redlock.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <mutex>

int main(int argc, char** argv) {
    if (argc < 5) {
        std::cerr << "usage: tls_and_password CA-FILE USER PASSWORD-FILE MASTER...\n";
        return 2;
    }
    try {
        redlock::config config;
        config.masters.assign(argv + 4, argv + argc); // rediss:// and a name in the certificate
        config.tls.ca_file = argv[1];                 // empty: the authorities of the system
        config.username = argv[2];
        config.password_file = argv[3]; // its first line
        config.max_ttl = std::chrono::seconds(5);
        // If the servers require a certificate of their clients:
        //     config.tls.certificate_file = "client.crt";
        //     config.tls.private_key_file = "client.key";

        redlock::blocking::manager manager(config); // throws if the config is wrong
        redlock::acquire_options options;
        options.ttl = config.max_ttl;
        redlock::blocking::mutex report(manager, "nightly/report", options);
        std::cout << "waiting for the lock" << std::endl;
        const std::lock_guard guard(report);
        std::cout << "locked, over TLS\n";
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "failed: " << error.what() << '\n'; // never contains the password
        return 1;
    }
}
