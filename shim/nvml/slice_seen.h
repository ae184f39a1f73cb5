// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/ledger/ledger.h"
#include "virtual_gpu/driver/nvml.h"
#include "virtual_gpu/gpu/virtual_gpu.h"

namespace cuslice {

// A slice of the GPU behind an NVML handle, as whoever asks NVML is shown it: what this process and those it shares its
// limit with hold. A program that only watches has opened no GPU through CUDA; its slice is worked out here then. Of
// this moment; some KiB.
class SliceSeen {
  public:
    // `physical_total`: of the GPU, in bytes; 0 where it is not known.
    SliceSeen(nvmlDevice_t device, uint64_t physical_total);

    bool limited() const { return limited_; }
    uint64_t total() const { return total_; }
    uint64_t used() const { return used_; }
    // Never more than is physically free.
    uint64_t free(uint64_t physical_free) const;
    // True if the process is one of those in the slice.
    bool has(unsigned pid) const;
    // Bytes of the slice that one of its processes holds. `physical`: bytes that it holds on the GPU according to
    // NVML.
    uint64_t held_by(unsigned pid, uint64_t physical) const;

  private:
    void see_own(const char* uuid);
    void see_from_outside(const char* uuid, const Slice& slice, uint64_t physical_total);
    void take_group_limit(const Slice& slice);
    uint64_t own() const { return gpu_ ? gpu_->budget().used() : 0; }

    bool limited_ = false, is_part_ = false;
    VirtualGpu* gpu_ = nullptr;  // null: this process only watches
    uint64_t total_ = 0, used_ = 0;
    ledger::Watched watched_;
};

}  // namespace cuslice
