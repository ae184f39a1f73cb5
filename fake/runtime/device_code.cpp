#include "fake/runtime/device_code.h"

#include <cstdint>
#include <cstring>

namespace cuslice::fake {
namespace {

template <class T>
T at(const unsigned char* data) {
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
}

/// Null: not a fat binary.
const unsigned char* container_of(const void* device_code, bool* linked) {
    const auto* data = static_cast<const unsigned char*>(device_code);
    if (data == nullptr || at<std::uint32_t>(data) != FatBinaryWrapper::kMagic) return nullptr;
    const auto wrapper = at<FatBinaryWrapper>(data);
    *linked = wrapper.version >= FatBinaryWrapper::kLinked;
    if (wrapper.container == nullptr) return nullptr;
    return at<std::uint32_t>(wrapper.container) == FatBinaryContainer::kMagic ? wrapper.container : nullptr;
}

}  // namespace

bool find_code(const void* device_code, int capability, Target* found) {
    bool linked = false;
    const unsigned char* const data = container_of(device_code, &linked);
    *found = {false, capability};
    if (data == nullptr) return true;
    const auto container = at<FatBinaryContainer>(data);
    const unsigned char* entry_at = data + container.header_size;
    bool any = false;
    for (std::uint64_t left = container.size; left >= sizeof(FatBinaryEntry);) {
        const auto entry = at<FatBinaryEntry>(entry_at);
        if (entry.header_size < sizeof entry || entry.header_size > left || entry.size > left - entry.header_size)
            break;
        const Target target{entry.kind == FatBinaryEntry::kPtx, static_cast<int>(entry.capability)};
        if (runs_on(target.ptx, target.capability, capability) && (!any || is_taken_before(target, *found))) {
            *found = target;
            any = true;
        }
        entry_at += entry.header_size + entry.size;
        left -= entry.header_size + entry.size;
    }
    return any || linked;
}

}  // namespace cuslice::fake
