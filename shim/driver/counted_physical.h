// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the hooks of physical memory, mapped or bound.
#include "shim/driver/counted.h"

namespace cuslice {

inline PhysicalMemory& physical_memory() { return gpu_state().physical_memory; }

/// Around a call of the driver's by which allocations of cuMemCreate may end. What of them was exported, others may
/// keep on the GPU: there is a look at it before and after.
class EndingMemory {
  public:
    /// `exported`: a bit for each GPU with such memory; mostly 0, and then there is nothing to do.
    explicit EndingMemory(uint64_t exported) : exported_(exported) {
        if (exported_) [[unlikely]]
            begin();
    }
    ~EndingMemory() {
        if (exported_) [[unlikely]]
            end();
    }
    EndingMemory(const EndingMemory&) = delete;
    EndingMemory& operator=(const EndingMemory&) = delete;

    PhysicalMemory::OnFreed on_freed() { return {give_back, this}; }

  private:
    static void give_back(void* self, int gpu, uint64_t bytes, PhysicalMemory::Kept kept);
    void begin();
    void end();

    uint64_t exported_;
    uint64_t before_[PhysicalMemory::kMaxGpus];  // by GPU, of those in exported_
};

// The driver's figure may include memory that isn't ours to count, and that the call has just released: an allocation
// of a process that has ended, or one bound to an array.
inline CUresult imported_given_back(CUresult result) {
    if (result == CUDA_SUCCESS)
        if (VirtualGpu* gpu = process().current().gpu)
            gpu->driver_gave_back();
    return result;
}

}  // namespace cuslice
