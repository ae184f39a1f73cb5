// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "virtual_gpu/split/dispatch.h"
#include "virtual_gpu/split/split.h"

namespace cuslice::tests {

/// Three virtual GPUs: two parts of GPU 0, and all of GPU 1. A process is split once.
inline void split_gpus() {
    if (split().count() != 0)
        return;
    GpuIdentity gpus[2];
    gpus[0].index = 0, gpus[1].index = 1;
    std::strcpy(gpus[0].uuid, "GPU-5f0e1d2c-1111-2222-3333-4444444444ab");
    std::strcpy(gpus[0].pci, "0000:81:00.0");
    std::strcpy(gpus[1].uuid, "GPU-99999999-1111-2222-3333-444444444444");
    std::strcpy(gpus[1].pci, "0000:c1:02.0");
    VirtualParts parts;
    parts.add({0, 0, 2, true, 1 << 30});
    parts.add({0, 1, 2, true, 1 << 30});
    parts.add({1, 0, 1, false, 0});
    open_split(gpus, parts);
}

}  // namespace cuslice::tests
