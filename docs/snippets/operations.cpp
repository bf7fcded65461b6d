// Quoted by docs/operations.md.

#include <redlock/lock_manager.hpp>
#include <redlock/prometheus.hpp>

#include <string>

namespace snippets::operations {

std::string metrics_page(const redlock::lock_manager& manager) {
    std::string page = redlock::to_prometheus(manager.get_metrics(), manager.get_health());
    return page;
}

} // namespace snippets::operations
