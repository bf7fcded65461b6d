// Quoted by docs/howto/tls_and_acl.md.

#include <redlock/lock_manager.hpp>

#include <string>

namespace snippets::tls {

redlock::config over_tls(const std::string& password) {
    redlock::config config;
    config.masters = {
        "rediss://master-1:6379",
        "rediss://master-2:6379",
        "rediss://master-3:6379",
    };
    config.tls.ca_file = "/etc/redlock/ca.crt";              // empty: the authorities of the system
    config.tls.certificate_file = "/etc/redlock/client.crt"; // only if the servers require one
    config.tls.private_key_file = "/etc/redlock/client.key";
    config.username = "locker";
    config.password = password;
    return config;
}

} // namespace snippets::tls
