#pragma once

#include "virtual_gpu/split/split.h"

namespace cuslice::tests {

/// Three virtual GPUs: two parts of GPU 0, and all of GPU 1. A process is split once.
inline void split_gpus() {
    if (split().count() != 0) return;
    for (const CUdevice physical : {0, 0, 1}) {
        Split::Device device;
        device.physical = physical;
        split().add(device);
    }
}

}  // namespace cuslice::tests
