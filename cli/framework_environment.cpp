#include "cli/framework_environment.h"

#include "config/resolve.h"

namespace cuslice::cli {
namespace {

// Which GPUs there are is not asked for this: a setting counts unless a stronger source says otherwise of the same GPU,
// or of all.
bool holds(const Entry& entry, const Settings& settings) {
    for (const Entry& other : settings.entries()) {
        const bool covers = other.selector.kind == GpuSelector::Kind::every || other.selector.same_as(entry.selector);
        if (other.key == entry.key && other.rank < entry.rank && covers) return false;
    }
    return true;
}

bool any_grows(const Settings& settings) {
    for (const Entry& entry : settings.entries()) {
        const bool growth =
            entry.key == Key::allocator && entry.number == static_cast<std::uint64_t>(AllocatorMode::growth);
        if (growth && holds(entry, settings)) return true;
    }
    return false;
}

}  // namespace

bool leaves_frameworks_alone(const Settings& settings) {
    const Entry* none = find(settings, Key::no_framework_env);
    return none != nullptr && none->number != 0;
}

void add_framework_variables(Environment& environment, const Settings& settings) {
    if (leaves_frameworks_alone(settings) || !any_grows(settings)) return;
    const auto add = [&](std::string_view name, std::string_view value) {
        if (!environment.get(name)) environment.set(name, value);
    };
    add("TF_FORCE_GPU_ALLOW_GROWTH", "true");
    add("XLA_PYTHON_CLIENT_PREALLOCATE", "false");
}

}  // namespace cuslice::cli
