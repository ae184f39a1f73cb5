// What shows where a pointer comes from: a block of a cache is to look like the allocation that the program made.
#include <algorithm>

#include "shim/driver/cached.h"
#include "shim/driver/export.h"
#include "shim/driver/kept.h"

namespace cuslice {

namespace {

using Found = CachingAllocator::Found;

// After the driver has answered for the whole segment: the same for the block, where that is something else.
void correct(const Found& block, CUpointer_attribute attribute, void* data) {
    if (!data) return;
    Caches& caches = process().caches();
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *static_cast<CUdeviceptr*>(data) = block.address;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            *static_cast<std::size_t*>(data) = block.requested;
            break;
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            if (const std::uint64_t id =
                    caches.notes().buffer_id(caches.map(), block.address, caches.context_of(block)))
                *static_cast<unsigned long long*>(data) = id;
            break;
        default:
            break;
    }
}

template <typename Pointer, typename Size>
CUresult range(Pointer* base, Size* size, CUdeviceptr address, CUresult result) {
    if (result != CUDA_SUCCESS) return result;
    const Found block = cached_block(address);
    if (block.address) {
        if (base) *base = static_cast<Pointer>(block.address);
        if (size) *size = static_cast<Size>(block.requested);
        return result;
    }
    if (const std::uint64_t bytes = process().caches().ipc_blocks().bytes_at(address)) {
        if (base) *base = static_cast<Pointer>(address);
        if (size) *size = static_cast<Size>(bytes);
        return result;
    }
    // In a segment and in no block: nobody's memory.
    const bool nobodys = process().caches_anything() && process().caches().map().segment(address);
    return nobodys ? CUDA_ERROR_NOT_FOUND : result;
}

}  // namespace

CUSLICE_HOOK cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
    if (ready() != Readiness::ready) return unavailable();
    return range(base, size, address, CUSLICE_REAL(cuMemGetAddressRange_v2)(base, size, address));
}

CUSLICE_HOOK cuMemGetAddressRange(CUdeviceptr_v1* base, unsigned* size, CUdeviceptr_v1 address) {
    if (ready() != Readiness::ready) return unavailable();
    return range(base, size, address, CUSLICE_REAL(cuMemGetAddressRange)(base, size, address));
}

// Who asks for these tokens, or for synchronous copies, is about to have the memory pinned for another device by a
// kernel module (nvidia-peermem, gdrdrv), which nobody can see here.

CUSLICE_HOOK cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
    if (ready() != Readiness::ready) return unavailable();
    if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS && !keep_from_reuse(address, 1)) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = CUSLICE_REAL(cuPointerGetAttribute)(data, attribute, address);
    if (result != CUDA_SUCCESS || !process().caches_anything()) return result;
    if (const Found block = cached_block(address); block.address) correct(block, attribute, data);
    return result;
}

CUSLICE_HOOK cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr address) {
    if (ready() != Readiness::ready) return unavailable();
    for (unsigned i = 0; attributes && i < count; i++)
        if (attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS && !keep_from_reuse(address, 1))
            return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = CUSLICE_REAL(cuPointerGetAttributes)(count, attributes, data, address);
    if (result != CUDA_SUCCESS || !process().caches_anything()) return result;
    if (const Found block = cached_block(address); block.address)
        for (unsigned i = 0; i < count; i++) correct(block, attributes[i], data[i]);
    return result;
}

CUSLICE_HOOK cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
    if (ready() != Readiness::ready) return unavailable();
    const bool on = value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && *static_cast<const unsigned*>(value);
    if (on && !keep_from_reuse(address, 1)) return CUDA_ERROR_OUT_OF_MEMORY;
    return CUSLICE_REAL(cuPointerSetAttribute)(value, attribute, address);
}

}  // namespace cuslice
