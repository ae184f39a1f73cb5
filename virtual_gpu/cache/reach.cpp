#include "virtual_gpu/cache/reach.h"

#include <iterator>

#include "virtual_gpu/gpu/current_context.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

std::size_t Reach::list(Contexts& contexts, CUcontext context, CUdeviceptr address, CUcontext* into, std::size_t most) {
    CUcontext all[kMaxContexts];
    CUdevice gpus[kMaxContexts];
    const std::size_t count = contexts.list(all, std::size(all), gpus);
    if (count > std::size(all)) return count;
    CUdevice gpu = -1;
    for (std::size_t i = 0; i < count; i++)
        if (all[i] == context) gpu = gpus[i];
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; i++)
        if (can_touch(all[i], gpus[i], gpu, address) && found++ < most) into[found - 1] = all[i];
    return found;
}

bool Reach::can_touch(CUcontext other, CUdevice other_gpu, CUdevice gpu, CUdeviceptr address) {
    if (other_gpu == gpu || split().siblings(other_gpu, gpu)) return true;
    if (gpu < 0 || gpu >= 64 || other_gpu < 0 || other_gpu >= 64) return true;
    if (copied_[gpu].load(std::memory_order_acquire) & bit(other_gpu)) return true;
    if (!can_have_access(other_gpu, gpu)) return false;
    // Documented to fail if no kernel of the current context can use the address. Whatever else it says counts as yes.
    const CurrentContext during(other, CurrentContext::Of::known);
    CUdeviceptr seen = 0;
    return !during || CUSLICE_REAL(cuPointerGetAttribute)(&seen, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address) !=
                          CUDA_ERROR_INVALID_VALUE;
}

// True if access can be enabled at all: a property of the machine, so the driver is asked once.
bool Reach::can_have_access(CUdevice from, CUdevice to) {
    if (able_[to].load(std::memory_order_relaxed) & bit(from)) return true;
    if (unable_[to].load(std::memory_order_relaxed) & bit(from)) return false;
    int can = 0;
    const bool known = CUSLICE_REAL(cuDeviceCanAccessPeer)(&can, from, to) == CUDA_SUCCESS;
    if (known) (can ? able_ : unable_)[to].fetch_or(bit(from), std::memory_order_relaxed);
    return !known || can;
}

void Reach::copied_among(std::uint64_t gpus) {
    for (unsigned gpu = 0; gpu < std::size(copied_); gpu++)
        if (gpus >> gpu & 1 && (copied_[gpu].load(std::memory_order_relaxed) & gpus) != gpus)
            copied_[gpu].fetch_or(gpus, std::memory_order_acq_rel);
}

}  // namespace cuslice
