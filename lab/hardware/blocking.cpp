// SPDX-License-Identifier: Apache-2.0
// Finds the calls that wait for a running kernel. A kernel waits on a stream until the host lets it go, which another
// thread does after 60 ms (and the kernel itself gives up after 2 s). A call that took more than half of that had to
// wait for it. Lines `call, size, stream <tab> waits | does not wait (time)`.
#include <pthread.h>
#include <time.h>

#include <thread>

#include "lab/hardware/driver.h"
#include "lab/hardware/text.h"

using namespace cuslice::check;

namespace {

/// Nanoseconds. Where no kernel is run nothing is held.
uint64_t held() { return kernels_are_skipped() ? 1'000'000 : 60'000'000; }

uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

class Holding {
  public:
    explicit Holding(CUfunction meet) : meet_(meet) {
        MUST(cuMemHostAlloc, &host_, sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP);
        MUST(cuMemHostGetDevicePointer_v2, &flag_, host_, 0);
    }

    /// Nanoseconds that `call` takes while the kernel holds `stream`; its result in `result`.
    template <typename Call>
    uint64_t time(CUstream stream, Call call, CUresult* result) {
        auto* flag = static_cast<volatile unsigned*>(host_);
        *flag = 0;
        CUdeviceptr none = 0;
        uint64_t most = 2'000'000'000;
        void* arguments[] = {&none, &flag_, &none, &most};
        MUST(cuLaunchKernel, meet_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
        std::thread release([&] {
            const timespec span{0, static_cast<long>(held())};
            nanosleep(&span, nullptr);
            *flag = 1;
        });
        const uint64_t start = now();
        *result = call();
        const uint64_t took = now() - start;
        release.join();
        MUST(cuCtxSynchronize);
        return took;
    }

  private:
    CUfunction meet_;
    void* host_ = nullptr;
    CUdeviceptr flag_ = 0;
};

struct Stream {
    const char* name;
    CUstream handle;
};

void print(const std::string& call, const Stream& stream, uint64_t took, CUresult result) {
    const bool waits = !kernels_are_skipped() && took > held() / 2;
    std::printf("%s, kernel on %s\t%s (%s)%s%s\n", call.c_str(), stream.name, waits ? "waits" : "does not wait",
                duration(static_cast<double>(took)).c_str(), result == CUDA_SUCCESS ? "" : ", ",
                result == CUDA_SUCCESS ? "" : name_of(result));
}

}  // namespace

int main() {
    Gpu gpu = find_gpu();
    open_context(gpu);
    const CUmodule module = load_kernels("kernels.ptx");
    Holding holding(kernel(module, "meet"));
    CUstream blocking = nullptr, other = nullptr, apart = nullptr;
    MUST(cuStreamCreate, &blocking, CU_STREAM_DEFAULT);
    MUST(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
    MUST(cuStreamCreate, &apart, CU_STREAM_NON_BLOCKING);
    const Stream streams[] = {{"the legacy default stream", CU_STREAM_LEGACY},
                              {"the per-thread default stream", CU_STREAM_PER_THREAD},
                              {"a stream", blocking},
                              {"a non-blocking stream", other}};
    CUresult result = CUDA_SUCCESS;
    for (const Stream& stream : streams) {
        // The first launch on a stream loads what the driver loads lazily, which would be timed otherwise.
        holding.time(
            stream.handle, [] { return CUDA_SUCCESS; }, &result);
        for (const uint64_t kib : {4u, 1024u, 65536u, 524288u}) {
            const uint64_t bytes = uint64_t{kib} << 10;
            CUdeviceptr block = 0;
            uint64_t took = holding.time(
                stream.handle, [&] { return CU(cuMemAlloc_v2)(&block, bytes); }, &result);
            print("cuMemAlloc of " + size(bytes), stream, took, result);
            if (result != CUDA_SUCCESS)
                continue;
            took = holding.time(
                stream.handle, [&] { return CU(cuMemFree_v2)(block); }, &result);
            print("cuMemFree of " + size(bytes), stream, took, result);
        }
        CUdeviceptr block = 0;
        uint64_t took = holding.time(
            stream.handle, [&] { return CU(cuMemAllocAsync)(&block, 1 << 20, apart); }, &result);
        print("cuMemAllocAsync on another stream", stream, took, result);
        if (result == CUDA_SUCCESS) {
            took = holding.time(
                stream.handle, [&] { return CU(cuMemFreeAsync)(block, apart); }, &result);
            print("cuMemFreeAsync on another stream", stream, took, result);
        }
        size_t free = 0, total = 0;
        took = holding.time(
            stream.handle, [&] { return CU(cuMemGetInfo_v2)(&free, &total); }, &result);
        print("cuMemGetInfo", stream, took, result);
    }
}
