// SPDX-License-Identifier: Apache-2.0
// How long single calls take: lines `what <tab> median ns <tab> p99 ns`. Run without and with cuslice in turn; the plan
// puts the runs side by side.
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "lab/hardware/driver.h"
#include "lab/hardware/text.h"

using namespace cuslice::check;

namespace {

double now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// One figure a repetition. Short calls are timed `batch` at a time, since reading the clock takes longer than they do.
/// What they leave running is over before the next figure: the queue would be full at some point, and the kernels
/// timed.
template <typename Call>
std::vector<double> repeat(int repetitions, int batch, Call call) {
    std::vector<double> times;
    for (int i = 0; i < repetitions; i++) {
        const double start = now();
        for (int k = 0; k < batch; k++)
            call();
        times.push_back((now() - start) / batch);
        MUST(cuCtxSynchronize);
    }
    return times;
}

void print(const std::string& what, std::vector<double> times) {
    std::sort(times.begin(), times.end());
    const size_t n = times.size();
    std::printf("%s\t%.1f\t%.1f\n", what.c_str(), times[n / 2], times[std::min(n - 1, n * 99 / 100)]);
    std::fflush(stdout);
}

template <typename Call>
void measure(const std::string& what, int repetitions, int batch, Call call) {
    repeat(std::min(repetitions, 20), 1, call);  // the first calls load what the driver loads lazily
    print(what, repeat(repetitions, batch, call));
}

/// Allocation and free apart, and with nothing running on the GPU.
void measure_size(uint64_t bytes, int repetitions) {
    std::vector<double> allocations, frees;
    for (int i = 0; i < repetitions; i++) {
        CUdeviceptr block = 0;
        const double start = now();
        const CUresult result = CU(cuMemAlloc_v2)(&block, bytes);
        const double middle = now();
        if (result != CUDA_SUCCESS)
            return std::printf("# %s: %s\n", size(bytes).c_str(), name_of(result)), void();
        MUST(cuMemFree_v2, block);
        const double end = now();
        allocations.push_back(middle - start);
        frees.push_back(end - middle);
    }
    print("cuMemAlloc of " + size(bytes), allocations);
    print("cuMemFree of " + size(bytes), frees);
}

/// The thread's own processor, so that its figures are not those of moving about.
void stay_here() {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &set);
    sched_setaffinity(0, sizeof set, &set);
}

void measure_launches() {
    const CUfunction nothing = kernel(load_kernels("kernels.ptx"), "nothing");
    const auto launch = [&](decltype(&::cuLaunchKernel) function) {
        must(function(nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), "cuLaunchKernel");
    };
    measure("cuLaunchKernel, exported symbol", 50, 100, [&] { launch(CU(cuLaunchKernel)); });
    void* looked_up = nullptr;
    CUdriverProcAddressQueryResult status{};
    MUST(cuGetProcAddress_v2, "cuLaunchKernel", &looked_up, 12000, 0, &status);
    measure("cuLaunchKernel, by cuGetProcAddress", 50, 100,
            [&] { launch(reinterpret_cast<decltype(&::cuLaunchKernel)>(looked_up)); });
}

void measure_events(CUcontext context) {
    CUevent event = nullptr;
    MUST(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    measure("cuEventRecord", 50, 100, [&] { MUST(cuEventRecord, event, nullptr); });
    if (find("cuCtxRecordEvent"))
        measure("cuCtxRecordEvent", 50, 100, [&] { MUST(cuCtxRecordEvent, context, event); });
    measure("cuEventQuery, complete", 50, 100, [&] { MUST(cuEventQuery, event); });
    measure("cuCtxSynchronize, idle", 200, 1, [&] { MUST(cuCtxSynchronize); });
}

void measure_pool() {
    CUstream stream = nullptr;
    MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = 0;
    if (CU(cuMemAllocAsync)(&block, 1 << 20, stream) != CUDA_SUCCESS)
        return;
    MUST(cuMemFreeAsync, block, stream);
    MUST(cuStreamSynchronize, stream);
    measure("cuMemAllocAsync + cuMemFreeAsync of 1 MiB, synchronised", 200, 1, [&] {
        MUST(cuMemAllocAsync, &block, 1 << 20, stream);
        MUST(cuMemFreeAsync, block, stream);
        MUST(cuStreamSynchronize, stream);
    });
}

}  // namespace

int main() {
    Gpu gpu = find_gpu();
    open_context(gpu);
    stay_here();
    size_t free = 0, total = 0;
    CUcontext context = nullptr;
    measure("cuCtxGetCurrent", 50, 1000, [&] { MUST(cuCtxGetCurrent, &context); });
    measure("cuMemGetInfo", 100, 10, [&] { MUST(cuMemGetInfo_v2, &free, &total); });
    CUdeviceptr block = 0;
    measure("cuMemAlloc + cuMemFree of 4 KiB", 200, 10, [&] {
        MUST(cuMemAlloc_v2, &block, 4096);
        MUST(cuMemFree_v2, block);
    });
    for (const uint64_t kib : {1u, 64u, 1024u, 2048u})
        measure_size(uint64_t{kib} << 10, 200);
    // Many, as the first thousand look at the footprint more often than the later ones.
    for (const uint64_t mib : {16u, 256u})
        measure_size(uint64_t{mib} << 20, 3000);
    measure_size(uint64_t{1} << 30, 30);
    measure_launches();
    measure_events(gpu.context);
    measure_pool();
}
