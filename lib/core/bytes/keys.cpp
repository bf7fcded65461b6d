#include "keys.hpp"

namespace redlock::core {

void assign_keys_of(
    std::string& out, std::string_view prefix, std::span<const std::string> resources) {
    out.clear();
    std::string key;
    for (const std::string& resource : resources) {
        assign_lock_key(key, prefix, resource);
        pack(out, key);
        assign_fence_key(key, prefix, resource);
        pack(out, key);
    }
}

std::vector<std::string>
slot_keys(std::string_view pool_key, std::uint32_t first, std::uint32_t count) {
    std::vector<std::string> out(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        assign_slot_key(out[i], pool_key, first + i);
    }
    return out;
}

lock_form assign_slot_keys(
    std::string& out, std::string_view pool_key, std::span<const std::uint32_t> numbers) {
    if (numbers.size() == 1) {
        assign_slot_key(out, pool_key, numbers[0]);
        return lock_form::exclusive;
    }
    out.clear();
    std::string key;
    std::string fence;
    for (const std::uint32_t number : numbers) {
        assign_slot_key(key, pool_key, number);
        assign_slot_fence_key(fence, key);
        pack(out, key);
        pack(out, fence);
    }
    return lock_form::all;
}

std::string shown(lock_form form, std::string_view key, std::string_view prefix) {
    if (form != lock_form::all) {
        return std::string(key);
    }
    std::string names;
    for_each_lock(form, key, [&](std::string_view one) {
        names.append(names.empty() ? "" : ", ").append(resource_of(one, prefix));
    });
    std::string out;
    assign_lock_key(out, prefix, names);
    return out;
}

} // namespace redlock::core
