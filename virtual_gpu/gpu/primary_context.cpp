// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/primary_context.h"

#include "virtual_gpu/driver/table.h"
#include "virtual_gpu/split/physical.h"
#include "virtual_gpu/split/split.h"
#include "virtual_gpu/split/virtual_context.h"

namespace cuslice {

namespace {

// A part's context has a number of its own, and is never made or ended unseen.
unsigned long long id_of(CUcontext context) {
    unsigned long long id = 0;
    return !split().installed() && CUSLICE_REAL(cuCtxGetId)(context, &id) == CUDA_SUCCESS ? id : 0;
}

}  // namespace

void PrimaryContext::is(CUcontext context) {
    id.store(id_of(context), std::memory_order_relaxed);
    handle.store(context);
}

bool PrimaryContext::is_another() const {
    const unsigned long long known = id.load(std::memory_order_relaxed);
    return known && id_of(handle.load()) != known;
}

bool primary_is_active(CUdevice device) {
    unsigned flags = 0;
    int active = 0;
    return CUSLICE_REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) == CUDA_SUCCESS && active;
}

bool physical_primary_is_active(CUdevice device) {
    const Split::Device* part = split().device(device);
    unsigned flags = 0;
    int active = 0;
    return CUSLICE_PHYSICAL(cuDevicePrimaryCtxGetState)(part ? part->physical : device, &flags, &active) ==
               CUDA_SUCCESS &&
           active;
}

CUcontext active_primary(CUdevice device) {
    CUcontext context = nullptr;
    if (!primary_is_active(device))
        return nullptr;
    // To release it could end it, with nobody there to free its memory (LeftMemory).
    if (split().device(device))
        return virtual_contexts().primary(device).handle();
    if (CUSLICE_REAL(cuDevicePrimaryCtxRetain)(&context, device) != CUDA_SUCCESS)
        return nullptr;
    CUSLICE_REAL(cuDevicePrimaryCtxRelease_v2)(device);
    return context;
}

}  // namespace cuslice
