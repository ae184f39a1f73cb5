// SPDX-License-Identifier: Apache-2.0
#pragma once
// Page-locked host memory: allocated by the driver, or the program's own and registered.

#include <cstddef>
#include <cstdint>

#include "fake/driver/context.h"

namespace cuslice::fake {

struct HostBlock {
    Address base = 0;
    size_t size = 0;
    unsigned flags = 0;
    bool registered = false;
    uint32_t pool = 0;  // the number of the pool that it is of
    CUcontext context = nullptr;
    uint32_t id = 0;
};

CUresult allocate_host(void** out, size_t bytes, unsigned flags);
CUresult free_host(void* pointer);
/// Page-locked memory of no context's, for a pool of this number; CUDA_ERROR_OUT_OF_MEMORY if the host has none.
CUresult allocate_host_for(uint32_t pool, size_t bytes, void** out);
/// Frees a pool's block that begins here, and says what it was; false if there is none.
bool free_host_of_pool(Address address, HostBlock& block);
/// Registers mapped memory of the program. CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED if any of it is registered;
/// CUDA_ERROR_INVALID_VALUE for the driver's own, a device's and what isn't mapped (H200, driver 580.159.04,
/// 2026-11-27).
CUresult register_host(void* pointer, size_t bytes, unsigned flags);
/// Takes the address that was registered; CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED for any other, but
/// CUDA_ERROR_INVALID_VALUE for memory of allocate_host.
CUresult unregister_host(void* pointer);

/// The block that contains the address.
bool find_host_block(Address address, HostBlock& block);
bool host_range_known(Address address, size_t size);
/// Frees and forgets what belongs to a context that ends.
void end_host_memory(CUcontext context);

}  // namespace cuslice::fake
