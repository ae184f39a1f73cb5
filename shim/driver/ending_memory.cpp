// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "shim/driver/counted_physical.h"
#include "virtual_gpu/gpu/late_release.h"

namespace cuslice {

namespace {

template <typename F>
void each_gpu(uint64_t gpus, F f) {
    for (; gpus; gpus &= gpus - 1)
        f(std::countr_zero(gpus));
}

}  // namespace

// Between the driver's answer and the charge nobody may compare the two: so it is a free under way.
void EndingMemory::begin() {
    each_gpu(exported_, [&](int gpu) { before_[gpu] = before_exported_release(process().gpu(gpu)); });
    hook_frame.freeing = true;
    gpu_state().frees.begin();
}

void EndingMemory::end() {
    gpu_state().frees.end();
    hook_frame.freeing = false;
    each_gpu(exported_, [&](int gpu) { after_exported_release(process().gpu(gpu)); });
}

void EndingMemory::give_back(void* self, int gpu, uint64_t bytes, PhysicalMemory::Kept kept) {
    const EndingMemory& ending = *static_cast<EndingMemory*>(self);
    VirtualGpu& on = process().gpu(gpu);
    if (kept == PhysicalMemory::Kept::exported)
        return release_exported(on, bytes, ending.exported_ >> gpu & 1 ? ending.before_[gpu] : 0);
    if (kept == PhysicalMemory::Kept::by_array)
        return release_shared(on, bytes);
    on.budget().begin_release();
    on.budget().end_release(bytes);
}

}  // namespace cuslice
