#include "forms.hpp"

#include "random.hpp"

namespace simulation {

void choose_forms(plan& what, generator& random) {
    const std::size_t resources = what.resources() + 1;
    for_each_op(what, [&](const client_plan&, op& one) {
        const std::uint64_t kind = random.below(10);
        if (kind < 3) {
            one.how = taking::all;
            for (std::uint64_t i = 1 + random.below(2); i > 0; --i) {
                one.with.push_back(static_cast<unsigned>(random.below(resources)));
            }
        } else if (kind < 6) {
            one.how = taking::reading;
        } else if (kind < 9 && random.percent(40)) {
            one.downgrade_after = random.between(0, one.hold);
        }
    });
}

} // namespace simulation
