// SPDX-License-Identifier: Apache-2.0
#pragma once
// How busy work keeps a device, and whose, where it takes time. Any thread.

#include <vector>

#include "fake/nvml/state.h"

namespace cuslice::fake {

/// Percent of a time in which kernels ran, and in which copies between host and device did.
struct Usage {
    unsigned compute = 0, copies = 0;
};

/// A device's use within the last second; 0 where no work was timed.
Usage usage_of(const NvmlDevice& device);

struct ProcessUsage {
    unsigned pid = 0;
    Usage usage;
};

/// A sample of the processes that a device is in use by. Times are in microseconds since 1970, as NVML has them; on
/// the virtual clock since that was set.
struct UsageSample {
    unsigned long long time = 0;  // of its end
    std::vector<ProcessUsage> processes;
};

/// The processes that have used the device later than `since`, a time of an earlier sample, or within what is known.
nvmlReturn_t sample_usage(NvmlDevice& device, unsigned long long since, UsageSample& sample);

}  // namespace cuslice::fake
