// SPDX-License-Identifier: Apache-2.0
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
    if (!data)
        return;
    Caches& caches = process().caches();
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *static_cast<CUdeviceptr*>(data) = block.address;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            *static_cast<size_t*>(data) = block.requested;
            break;
        case CU_POINTER_ATTRIBUTE_BUFFER_ID: {
            const Contexts::Id context = caches.context_of(block);
            const uint64_t id = caches.block_attributes().buffer_id(caches.map(), block.address, context);
            if (id)
                *static_cast<unsigned long long*>(data) = id;
            break;
        }
        default:
            break;
    }
}

bool asks_for_tokens(unsigned count, const CUpointer_attribute* attributes) {
    if (!attributes)
        return false;
    return std::find(attributes, attributes + count, CU_POINTER_ATTRIBUTE_P2P_TOKENS) != attributes + count;
}

// The block of a cache that the driver has just answered for; its address is 0 where there is none.
Found block_at(CUresult result, CUdeviceptr address) {
    const bool can_be_cached = result == CUDA_SUCCESS && process().caches_anything();
    return can_be_cached ? cached_block(address) : Found{};
}

}  // namespace

// A program that asks for these tokens, or for synchronous copies, is about to have a kernel module (nvidia-peermem,
// gdrdrv) pin the memory for another device. Nobody can see that here.

CUSLICE_HOOK(cuPointerGetAttribute, data, attribute, address) {
    if (asks_for_tokens(1, &attribute) && !keep_from_reuse(address, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = CUSLICE_REAL(cuPointerGetAttribute)(data, attribute, address);
    const Found block = block_at(result, address);
    if (block.address)
        correct(block, attribute, data);
    return result;
}

CUSLICE_HOOK(cuPointerGetAttributes, count, attributes, data, address) {
    if (asks_for_tokens(count, attributes) && !keep_from_reuse(address, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = CUSLICE_REAL(cuPointerGetAttributes)(count, attributes, data, address);
    const Found block = block_at(result, address);
    if (!block.address)
        return result;
    for (unsigned i = 0; i < count; i++)
        correct(block, attributes[i], data[i]);
    return result;
}

CUSLICE_HOOK(cuPointerSetAttribute, value, attribute, address) {
    const bool synchronous = value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
    const bool on = synchronous && *static_cast<const unsigned*>(value);
    if (on && !keep_from_reuse(address, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CUSLICE_REAL(cuPointerSetAttribute)(value, attribute, address);
}

}  // namespace cuslice
