// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual_gpu/interleave/charged_memory.h"

#include "virtual_gpu/gpu/allocation_kind.h"
#include "virtual_gpu/gpu/charged_allocation.h"
#include "virtual_gpu/gpu/pushed_context.h"

namespace cuslice::tests {

uint64_t allocate_charged(VirtualGpu& gpu, MadeUpGpu& driver, uint64_t bytes) {
    LimitError why;
    if (!gpu.reserve(bytes, &why))
        return 0;
    Reservation reservation(gpu.budget(), bytes);
    CUdeviceptr address = 0;
    const auto allocate = [&] { return CUSLICE_REAL(cuMemAlloc_v2)(&address, bytes); };
    const auto record = [&] {
        const Allocation made{address, bytes, gpu_state().contexts.known_id(current_context()),
                              static_cast<uint8_t>(gpu.ordinal()), static_cast<uint8_t>(Kind::memory)};
        return gpu_state().allocations.insert(made) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    };
    const auto undo = [&] { CUSLICE_REAL(cuMemFree_v2)(address); };
    if (charged_allocation(reservation, allocate, record, undo) != CUDA_SUCCESS)
        return 0;
    driver.hand_out(address, bytes);
    return address;
}

bool free_charged(VirtualGpu& gpu, MadeUpGpu& driver, uint64_t address) {
    bool was_recorded = false;
    const auto free = [&] { return CUSLICE_REAL(cuMemFree_v2)(address); };
    const auto release = [&](CUresult, const Allocation& freed) {
        was_recorded = freed.address == address;
        release_freed(gpu, freed);
    };
    driver.take_back(address);
    return charged_free(address, free, release) == CUDA_SUCCESS && was_recorded;
}

void add_bytes(const Allocation& allocation, void* sum) { *static_cast<uint64_t*>(sum) += allocation.bytes; }

uint64_t recorded_bytes() {
    uint64_t bytes = 0;
    gpu_state().allocations.for_each(add_bytes, &bytes);
    return bytes;
}

}  // namespace cuslice::tests
