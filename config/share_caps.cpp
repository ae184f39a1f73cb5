// SPDX-License-Identifier: Apache-2.0
#include "config/share_caps.h"

#include <algorithm>

#include "config/resolve.h"

namespace cuslice {
namespace {

// A GPU that the selector is for, as far as its text tells: no other selector matches it but a general one.
GpuIdentity gpu_named_by(const GpuSelector& selector) {
    GpuIdentity gpu;
    gpu.index = selector.index;
    selector.text.copy(gpu.uuid, sizeof gpu.uuid - 1);
    selector.text.copy(gpu.pci, sizeof gpu.pci - 1);
    return gpu;
}

// Compares the values that hold where `entry` is for. A rule's share isn't refused but lowered to the cap.
bool check_cap_above_share(const Settings& settings, const Entry& entry, ConfigError& error) {
    const GpuIdentity gpu = gpu_named_by(entry.selector);
    const Entry* const cap = find(settings, Key::share_cap, gpu);
    const Entry* const share = find(settings, Key::share, gpu);
    const bool both = cap != nullptr && share != nullptr;
    if (!both || cap->number >= share->number)
        return true;
    Reason why("below the share, which is ");
    why.append(share->value, " by ", share->origin);
    return refuse_entry(*cap, why, error);
}

bool has_share(const Settings& settings, const GpuSelector& selector) {
    if (selector.is_general())
        return shares_time(settings);
    return share_for(settings, gpu_named_by(selector)).has_value();
}

// Options and variables: in a file a cap is what holds for those who have a share.
bool needs_share(const Entry& cap) { return cap.rank.level == 0 && !is_file(cap.rank.source); }

bool check_cap(const Settings& settings, const Entry& cap, ConfigError& error) {
    const bool lonely = needs_share(cap) && !has_share(settings, cap.selector);
    return !lonely || refuse_entry(cap, "it needs a share of that GPU, as --share 30%", error);
}

bool check_entry(const Settings& settings, const Entry& entry, ConfigError& error) {
    if (entry.ceiling)
        return true;
    switch (entry.key) {
        case Key::share:
            return check_cap_above_share(settings, entry, error);
        case Key::share_cap:
            return check_cap(settings, entry, error) && check_cap_above_share(settings, entry, error);
        default:
            return true;
    }
}

}  // namespace

bool check_share_caps(const Settings& settings, ConfigError& error) {
    return std::ranges::all_of(settings.entries(),
                               [&](const Entry& entry) { return check_entry(settings, entry, error); });
}

}  // namespace cuslice
