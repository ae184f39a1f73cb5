// SPDX-License-Identifier: Apache-2.0
// Processors near a device: all of them, since there is no device.

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "fake/nvml/answer.h"

using namespace cuslice::fake;
using namespace cuslice::nvml;

namespace {

constexpr unsigned kBitsOfWord = 8 * sizeof(unsigned long);

bool exists(unsigned processor) {
    return processor < static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_CONF), 1L));
}

/// Lets the calling thread run on all processors; those that its control group doesn't have stay out.
nvmlReturn_t run_anywhere(nvmlDevice_t handle) {
    return with_device(handle, &handle, [](const NvmlDevice&) {
        cpu_set_t all;
        CPU_ZERO(&all);
        for (unsigned i = 0; i < CPU_SETSIZE && exists(i); i++)
            CPU_SET(i, &all);
        return sched_setaffinity(0, sizeof all, &all) == 0 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
    });
}

}  // namespace

CUSLICE_NVML_DEVICE(nvmlDeviceGetCpuAffinity, mask, handle, words, mask) {
    if (words == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    std::fill_n(mask, words, 0UL);
    for (unsigned i = 0; i < words * kBitsOfWord && exists(i); i++)
        mask[i / kBitsOfWord] |= 1UL << (i % kBitsOfWord);
    return NVML_SUCCESS;
}

CUSLICE_NVML(nvmlDeviceSetCpuAffinity, handle) { return run_anywhere(handle); }
CUSLICE_NVML(nvmlDeviceClearCpuAffinity, handle) { return run_anywhere(handle); }
