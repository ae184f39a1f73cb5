// SPDX-License-Identifier: Apache-2.0
#pragma once
// The process's one driver: the GPUs that are visible, and the lock of everything that isn't the allocation path.

#include <memory>
#include <mutex>
#include <vector>

#include "fake/driver/gpu.h"

namespace cuslice::fake {

struct Driver {
    std::vector<std::unique_ptr<Gpu>> gpus;  // by ordinal
    bool kernels_are_errors = false;         // CUSLICE_FAKE_KERNELS=error
    std::mutex lock;                         // contexts' and modules' life, pools, peers

    /// The GPU of an ordinal from the program, or null.
    Gpu* gpu(CUdevice ordinal) const {
        return ordinal >= 0 && static_cast<size_t>(ordinal) < gpus.size() ? gpus[static_cast<size_t>(ordinal)].get()
                                                                          : nullptr;
    }
};

/// Filled by cuInit (initialise.h), valid to the end of the process; never destroyed.
Driver& driver();

/// Holds the driver's lock while it lives.
struct DriverLock : std::lock_guard<std::mutex> {
    DriverLock() : lock_guard(driver().lock) {}
};

/// The GPU of an ordinal from the program; CUDA_ERROR_INVALID_DEVICE if there is none.
template <typename Found>
CUresult find_gpu(CUdevice device, Found*& gpu) {
    gpu = driver().gpu(device);
    return gpu == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

/// The same, checked together with the place for the answer.
inline CUresult device_and(const void* out, CUdevice device, Gpu*& gpu) {
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE : find_gpu(device, gpu);
}

}  // namespace cuslice::fake
