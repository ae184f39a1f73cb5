// SPDX-License-Identifier: Apache-2.0
// The driver's footprint on a made-up GPU, as a made-up NVML shows it.
#pragma once

#include "tests/catch.h"
#include "tests/virtual_gpu/gpu/made_up_nvml.h"
#include "virtual_gpu/gpu/driver_footprint.h"

namespace cuslice::tests {

struct FootprintScene {
    FootprintScene() {
        machine = {};
        shown_free = 0;
        put(NvmlFunction::nvmlInit_v2, init);
        put(NvmlFunction::nvmlDeviceGetHandleByUUID, by_uuid);
        put(NvmlFunction::nvmlDeviceGetComputeRunningProcesses_v3, processes);
        put(NvmlFunction::nvmlDeviceGetMPSComputeRunningProcesses_v3, no_processes);
        put(NvmlFunction::nvmlDeviceGetMemoryInfo, memory);
    }
    // `pid`: 0 where it isn't known under which NVML would list us. `on_top`: bytes that are charged to nobody.
    void open(unsigned pid = kPid, uint64_t on_top = 0) {
        NvmlGpu nvml;
        nvml.open("GPU-made-up");
        part.open(nvml, pid, free_memory, 500 * kMiB, on_top, frees, mutex);
    }
    // The driver makes a context, or loads a module.
    void grow(uint64_t bytes, uint64_t others = 0, bool context = false) {
        DriverFootprint::Step step = part.before(budgets, context);
        machine.listed = listable;
        machine.process += bytes;
        machine.all += bytes + others;
        if (shown_free)
            shown_free -= bytes + others;
        part.after(step, {}, budgets);
    }
    void allocate(uint64_t bytes) {
        REQUIRE(budget.reserve(bytes));
        budget.commit();
        machine.process += bytes;
        machine.all += bytes;
    }
    DriverFootprint::State alive(unsigned contexts) const { return {0, contexts, 0, part.step_count()}; }
    bool listable = true;
    Mutex mutex{LockRank::driver_footprint};
    Budget budget;
    const DriverFootprint::Share whole[1] = {{&budget}};
    const DriverFootprint::Budgets budgets{whole};
    InFlight frees;
    DriverFootprint part;
};

}  // namespace cuslice::tests
