// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/addresses.h"

#include "fake/driver/mappings.h"
#include "fake/driver/state.h"

namespace cuslice::fake {

Region* region_of(Gpu& gpu, Address address) {
    for (Region* region : {&gpu.device, &gpu.managed, &gpu.low}) {
        if (region->contains(address))
            return region;
    }
    return nullptr;
}

Found find_block(Address address) {
    for (const auto& gpu : driver().gpus) {
        Region* region = region_of(*gpu, address);
        if (region == nullptr)
            continue;
        const std::lock_guard hold(gpu->lock);
        const Block block = region->heap.find(address);
        return block ? Found{gpu.get(), region, block.base, *block.record} : Found{};
    }
    return {};
}

bool is_device_address(Address address) {
    for (const auto& gpu : driver().gpus) {
        if (gpu->device.contains(address) || gpu->low.contains(address))
            return true;
    }
    return in_reserved_addresses(address);
}

}  // namespace cuslice::fake
