#pragma once
// The process's one driver: the GPUs that are visible, and the lock of everything that isn't the allocation path.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fake/driver/gpu.h"

namespace cuslice::fake {

struct Driver {
    std::vector<std::unique_ptr<Gpu>> gpus;  // by ordinal
    bool kernels_are_errors = false;         // CUSLICE_FAKE_KERNELS=error
    bool high_addresses = false;             // CUSLICE_FAKE_ADDRESSES=high
    std::mutex lock;                         // contexts' and modules' life, pools, peers

    /// The GPU of an ordinal from the program, or null.
    Gpu* gpu(CUdevice ordinal) const {
        return ordinal >= 0 && static_cast<std::size_t>(ordinal) < gpus.size()
                   ? gpus[static_cast<std::size_t>(ordinal)].get()
                   : nullptr;
    }
};

/// Valid from cuInit to the end of the process; never destroyed.
Driver& driver();

/// cuInit: reads CUSLICE_FAKE and the fake GPU's other variables, CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, once.
CUresult initialise();

/// Chooses and orders the GPUs as CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER say. As in NVIDIA's driver, the list ends
/// at the first item that names no GPU or is not of the first one's kind, index or UUID; an item that repeats another
/// leaves no GPU at all. Of GPUs that MIG divides a process sees one instance: the one that is named by its UUID, else
/// the first; and beside an instance it sees nothing.
MachineSpec visible_gpus(const MachineSpec& machine, const char* visible, const char* order);

}  // namespace cuslice::fake
