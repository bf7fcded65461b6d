// The whole engine, as the simulator runs it, with masters that also say what a fuzzer makes up.
// Whatever they say, the engine keeps its contract with its host, and each loss is signalled in
// time.

#include "input.hpp"
#include "require.hpp"
#include "simulation/profiles.hpp"
#include "simulation/world.hpp"

#include <algorithm>
#include <array>

using namespace simulation;

namespace {

constexpr std::array<std::string_view, 8> names{
    "calm",
    "network",
    "restarts",
    "queues",
    "guarded-calm",
    "guarded-network",
    "guarded-flushes",
    "forms-network"};

// What a client has to keep even if its masters lie. They may give a lock to two.
constexpr std::array contract{promise::sane, promise::loss_told, promise::turn, promise::truth};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr int lies_max = 100; // more find nothing that two plans do not
    static lua_machine lua;
    fuzz::input in(data, size);
    const profile& kind = *find_profile(names[in.below(names.size())]);
    plan what = make_plan(in.word(), kind);
    what.kept = what.ordered = what.bounded = false;
    for (int i = 0; i < lies_max && !in.empty(); ++i) {
        fault lie{.kind = fault_kind::lie};
        lie.at = static_cast<nanos>(in.word()) * what.faults_end / 65'536;
        lie.client = static_cast<int>(in.below(what.clients.size()));
        lie.master = static_cast<int>(in.below(what.masters.size()));
        lie.amount = in.flag() ? 1 : 0;
        lie.text = in.text(in.byte());
        what.faults.push_back(lie);
    }
    const outcome ended = run(what, lua);
    const bool broken = ended.broken && std::ranges::count(contract, ended.broken->broken) != 0;
    fuzz::require(!broken, broken ? ended.broken->text.c_str() : "");
    return 0;
}
