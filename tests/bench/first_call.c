// SPDX-License-Identifier: Apache-2.0
// A program's first CUDA calls, as NVIDIA's runtime makes them: it opens the driver by name, initialises it, takes the
// primary context of the first GPU and allocates. Says "ready", waits for its standard input to end, does it, and
// writes how long that took and what it was told of the GPU's memory. With the word "nvml" it also asks NVML, as
// cuslice does, for the GPU, its processes and its memory.
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>

// ISO C has no conversion from what dlsym returns to a function, POSIX has.
#define DRIVER(symbol, name) __typeof__(&symbol) name = __extension__(__typeof__(&symbol)) dlsym(driver, #symbol)

// As nvml.h has them, which not every CUDA brings along.
typedef int (*nvml_init)(void);
typedef int (*nvml_handle)(unsigned index, void** device);
typedef int (*nvml_processes)(void* device, unsigned* count, void* processes);
typedef int (*nvml_memory)(void* device, void* memory);

static int ask_nvml(void) {
    void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!nvml)
        return 1;
#define NVML(type, name) __extension__(type) dlsym(nvml, name)
    void* device;
    char processes[64 * 32];
    unsigned long long memory[3];
    unsigned count = 64;
    return (NVML(nvml_init, "nvmlInit_v2"))() || (NVML(nvml_handle, "nvmlDeviceGetHandleByIndex_v2"))(0, &device) ||
           (NVML(nvml_processes, "nvmlDeviceGetComputeRunningProcesses_v3"))(device, &count, processes) ||
           (NVML(nvml_memory, "nvmlDeviceGetMemoryInfo"))(device, memory);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int count, char** words) {
    (void)words;
    struct {
        int64_t start, end;
        uint64_t total;
    } answer = {0, 0, 0};
    char byte = 'r';
    if (write(1, &byte, 1) != 1)
        return 1;
    if (read(0, &byte, 1) != 0)
        return 1;

    answer.start = now_ns();
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return 2;
    DRIVER(cuInit, init);
    DRIVER(cuDevicePrimaryCtxRetain, retain);
    DRIVER(cuCtxSetCurrent, set_current);
    DRIVER(cuMemAlloc_v2, allocate);
    CUcontext context;
    CUdeviceptr block;
    if (init(0) || retain(&context, 0) || set_current(context) || allocate(&block, 1 << 20))
        return 3;
    if (count > 1 && ask_nvml())
        return 4;
    answer.end = now_ns();

    DRIVER(cuDeviceTotalMem_v2, total);
    size_t bytes = 0;
    if (total(&bytes, 0))
        return 3;
    answer.total = bytes;
    return write(1, &answer, sizeof(answer)) == sizeof(answer) ? 0 : 1;
}
