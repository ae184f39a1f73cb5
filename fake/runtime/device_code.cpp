// SPDX-License-Identifier: Apache-2.0
#include "fake/runtime/device_code.h"

#include <cstdint>

#include "fake/bytes.h"
#include "virtual_gpu/driver/fat_binary.h"

namespace cuslice::fake {
namespace {

/// Null: not a fat binary.
const unsigned char* container_of(const void* device_code, bool* linked) {
    const auto* data = static_cast<const unsigned char*>(device_code);
    if (data == nullptr || value_at<uint32_t>(data) != FatBinaryWrapper::kMagic)
        return nullptr;
    const auto wrapper = value_at<FatBinaryWrapper>(data);
    *linked = wrapper.version >= FatBinaryWrapper::kLinked;
    if (wrapper.container == nullptr)
        return nullptr;
    return value_at<uint32_t>(wrapper.container) == FatBinaryContainer::kMagic ? wrapper.container : nullptr;
}

}  // namespace

bool find_code(const void* device_code, int capability, Target* found) {
    bool linked = false;
    const unsigned char* const data = container_of(device_code, &linked);
    *found = {false, capability};
    if (data == nullptr)
        return true;
    const auto container = value_at<FatBinaryContainer>(data);
    const unsigned char* entry_at = data + container.header_size;
    bool any = false;
    for (uint64_t left = container.size; left >= sizeof(FatBinaryEntry);) {
        const auto entry = value_at<FatBinaryEntry>(entry_at);
        if (!entry.fits(left))
            break;
        const Target target{entry.kind == FatBinaryEntry::kPtx, static_cast<int>(entry.capability)};
        if (runs_on(target.ptx, target.capability, capability) && (!any || is_taken_before(target, *found))) {
            *found = target;
            any = true;
        }
        entry_at += entry.bytes();
        left -= entry.bytes();
    }
    return any || linked;
}

}  // namespace cuslice::fake
