// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/cache/reach.h"

#include <iterator>

#include "virtual_gpu/gpu/current_context.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

namespace {

bool has_bit(CUdevice gpu) { return gpu >= 0 && gpu < 64; }

// False only if the driver documents that no kernel of the context can use the address: its attributes can't be asked
// for then. Anything else that it says counts as yes.
bool kernels_can_use(CUcontext context, CUdeviceptr address) {
    const CurrentContext during(context);
    if (!during)
        return true;
    CUdeviceptr seen = 0;
    return CUSLICE_REAL(cuPointerGetAttribute)(&seen, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address) !=
           CUDA_ERROR_INVALID_VALUE;
}

// The GPU of a listed context; -1 of any other.
CUdevice gpu_of(CUcontext context, const CUcontext* all, const CUdevice* gpus, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (all[i] == context)
            return gpus[i];
    return -1;
}

}  // namespace

size_t Reach::list(Contexts& contexts, CUcontext context, CUdeviceptr address, CUcontext* into, size_t most) {
    CUcontext all[kMaxContexts];
    CUdevice gpus[kMaxContexts];
    const size_t count = contexts.list(all, std::size(all), gpus);
    if (count > std::size(all))
        return count;
    const CUdevice gpu = gpu_of(context, all, gpus, count);
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (!can_touch(all[i], gpus[i], gpu, address))
            continue;
        if (found < most)
            into[found] = all[i];
        found++;
    }
    return found;
}

bool Reach::can_touch(CUcontext other, CUdevice other_gpu, CUdevice gpu, CUdeviceptr address) {
    if (other_gpu == gpu || split().siblings(other_gpu, gpu))
        return true;
    if (!has_bit(gpu) || !has_bit(other_gpu))
        return true;
    if (copied_[gpu].load(std::memory_order_acquire) & bit(other_gpu))
        return true;
    return can_have_access(other_gpu, gpu) && kernels_can_use(other, address);
}

// True if access can be enabled at all: a property of the machine, so the driver is asked once.
bool Reach::can_have_access(CUdevice from, CUdevice to) {
    if (able_[to].load(std::memory_order_relaxed) & bit(from))
        return true;
    if (unable_[to].load(std::memory_order_relaxed) & bit(from))
        return false;
    int can = 0;
    if (CUSLICE_REAL(cuDeviceCanAccessPeer)(&can, from, to) != CUDA_SUCCESS)
        return true;
    std::atomic<uint64_t>& answer = can ? able_[to] : unable_[to];
    answer.fetch_or(bit(from), std::memory_order_relaxed);
    return can != 0;
}

void Reach::copied_among(uint64_t gpus) {
    for (unsigned gpu = 0; gpu < std::size(copied_); gpu++) {
        if (!(gpus >> gpu & 1))
            continue;
        const bool known = (copied_[gpu].load(std::memory_order_relaxed) & gpus) == gpus;
        if (!known)
            copied_[gpu].fetch_or(gpus, std::memory_order_acq_rel);
    }
}

}  // namespace cuslice
