#pragma once
#include "shim/driver/cached.h"

namespace cuslice {

// Keeps blocks of caches in this range from being reused once they are freed. Their holder may go on using them after
// the free, as a device does that reads and writes memory by itself. False if there is no memory to note it in.
inline bool keep_from_reuse(CUdeviceptr address, std::uint64_t bytes) {
    if (!process().caches_anything() || inside_hook) return true;
    Caches& caches = process().caches();
    const AddressMap& map = caches.map();
    const CUdeviceptr end = bytes > ~0ull - address ? ~0ull : address + bytes;
    const auto after = [](CUdeviceptr at, std::uint64_t step) { return at / step * step + step; };
    for (CUdeviceptr at = address; at < end && map.segment(at);) {
        if (const ContextAllocator::Found block = ContextAllocator::find(caches.map(), at); block.address) {
            if (!caches.exported(block)) return false;
            at = after(block.address + block.requested - 1, SizeClass::kUnit);
            continue;
        }
        const AddressMap::Here here = map.at(at);
        at = here.span                       ? after(at, SizeClass::kUnit)
             : here.block && here.begin > at ? here.begin
                                             : after(at, SizeClass::kGranule);
    }
    return true;
}

}  // namespace cuslice
