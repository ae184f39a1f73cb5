// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "shim/driver/cached.h"

namespace cuslice {

inline CUdeviceptr next_multiple(CUdeviceptr address, uint64_t step) { return address / step * step + step; }

// The first address behind `at`, which is in a segment and in no block, that can be in one.
inline CUdeviceptr behind_gap(const AddressMap& map, CUdeviceptr at) {
    const AddressMap::Here here = map.at(at);
    if (here.span)
        return next_multiple(at, SizeClass::kUnit);
    return here.begin > at ? here.begin : next_multiple(at, SizeClass::kGranule);
}

// Keeps blocks of caches in this range from being reused once they are freed. Their holder may go on using them after
// the free, as a device does that reads and writes memory by itself. False if there is no memory to note it in.
inline bool keep_from_reuse(CUdeviceptr address, uint64_t bytes) {
    if (!process().caches_anything() || inside_hook)
        return true;
    Caches& caches = process().caches();
    auto& map = caches.map();
    const CUdeviceptr end = bytes > ~0ull - address ? ~0ull : address + bytes;
    CUdeviceptr at = address;
    while (at < end && map.segment(at)) {
        const ContextAllocator::Found block = ContextAllocator::find(map, at);
        if (!block.address) {
            at = behind_gap(map, at);
            continue;
        }
        if (!caches.exported(block))
            return false;
        at = next_multiple(block.address + block.requested - 1, SizeClass::kUnit);
    }
    return true;
}

}  // namespace cuslice
