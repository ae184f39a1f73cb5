// Attributes of pointers: a block of a cache is to look like the allocation that the program made.
#include <algorithm>

#include "shim/driver/cached.h"
#include "shim/driver/export.h"
#include "shim/driver/kept.h"

namespace cuslice {

namespace {

using Found = ContextAllocator::Found;

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
                    caches.block_attributes().buffer_id(caches.map(), block.address, caches.context_of(block)))
                *static_cast<unsigned long long*>(data) = id;
            break;
        default:
            break;
    }
}

}  // namespace

// A program that asks for these tokens, or for synchronous copies, is about to have a kernel module (nvidia-peermem,
// gdrdrv) pin the memory for another device. Nobody can see that here.

CUSLICE_HOOK(cuPointerGetAttribute, data, attribute, address) {
    if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS && !keep_from_reuse(address, 1)) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = CUSLICE_REAL(cuPointerGetAttribute)(data, attribute, address);
    if (result != CUDA_SUCCESS || !process().caches_anything()) return result;
    if (const Found block = cached_block(address); block.address) correct(block, attribute, data);
    return result;
}

CUSLICE_HOOK(cuPointerGetAttributes, count, attributes, data, address) {
    for (unsigned i = 0; attributes && i < count; i++)
        if (attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS && !keep_from_reuse(address, 1))
            return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = CUSLICE_REAL(cuPointerGetAttributes)(count, attributes, data, address);
    if (result != CUDA_SUCCESS || !process().caches_anything()) return result;
    if (const Found block = cached_block(address); block.address)
        for (unsigned i = 0; i < count; i++) correct(block, attributes[i], data[i]);
    return result;
}

CUSLICE_HOOK(cuPointerSetAttribute, value, attribute, address) {
    const bool on = value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && *static_cast<const unsigned*>(value);
    if (on && !keep_from_reuse(address, 1)) return CUDA_ERROR_OUT_OF_MEMORY;
    return CUSLICE_REAL(cuPointerSetAttribute)(value, attribute, address);
}

}  // namespace cuslice
