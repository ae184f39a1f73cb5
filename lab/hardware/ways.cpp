// SPDX-License-Identifier: Apache-2.0
// Every way in which a program gets memory, one after the other: taken, written and read back, given back, each with
// NVML's figure and cuslice's count. Captures and graphs with it, and memory that is freed while a kernel still writes
// to it. Told to its watcher as well (report.h).
//
//   ways [IDLE]    then waits IDLE milliseconds with everything freed, for memory that is given back after a while
#include <time.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "lab/hardware/report.h"
#include "lab/hardware/rows.h"

using namespace cuslice::check;

namespace {

constexpr size_t kBytes = 64 << 20;

void wait(long milliseconds) {
    const timespec span{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
    nanosleep(&span, nullptr);
}

bool holds(CUdeviceptr memory, size_t bytes, unsigned expected) {
    std::vector<unsigned> back(bytes / sizeof(unsigned));
    MUST(cuMemcpyDtoH_v2, back.data(), memory, bytes);
    for (unsigned word : back)
        if (word != expected)
            return false;
    return true;
}

class Ways {
  public:
    explicit Ways(const Gpu& gpu) : gpu_(gpu), rows_(gpu) {
        MUST(cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
        rows_.row("the primary context and a stream");
    }

    void all() {
        blocks();
        pools();
        virtual_memory();
        captured();
        graph_memory();
        freed_in_use();
    }
    void idle(long milliseconds) {
        wait(milliseconds);
        // Some caches give back at the next call only.
        CUdeviceptr block = 0;
        if (CU(cuMemAlloc_v2)(&block, 4096) == CUDA_SUCCESS)
            MUST(cuMemFree_v2, block);
        rows_.row("everything freed, and " + std::to_string(milliseconds) + " ms later");
    }
    int wrong() const { return wrong_; }

  private:
    using Take = std::function<CUresult(CUdeviceptr*)>;
    using Give = std::function<CUresult(CUdeviceptr)>;

    void expect(bool right, const std::string& what) {
        wrong_ += !right;
        rows_.row(what + (right ? "" : ": **wrong**"));
    }

    void way(const std::string& name, size_t bytes, const Take& take, const Give& give) {
        CUdeviceptr memory = 0;
        const CUresult taken = rows_.attempt(name, take(&memory));
        if (taken != CUDA_SUCCESS) {
            wrong_ += taken != CUDA_ERROR_NOT_SUPPORTED;
            return;
        }
        MUST(cuMemsetD32Async, memory, ++pattern_, bytes / 4, stream_);
        MUST(cuStreamSynchronize, stream_);
        const bool right = holds(memory, bytes, pattern_);
        const CUresult given = give(memory);
        expect(right && given == CUDA_SUCCESS, right ? "written, read and freed" : "freed; the bytes differ");
    }

    void blocks() {
        const Give free = [](CUdeviceptr memory) { return CU(cuMemFree_v2)(memory); };
        way(
            "cuMemAlloc of 64 MiB", kBytes, [](CUdeviceptr* to) { return CU(cuMemAlloc_v2)(to, kBytes); }, free);
        way(
            "cuMemAlloc of 4 KiB", 4096, [](CUdeviceptr* to) { return CU(cuMemAlloc_v2)(to, 4096); }, free);
        size_t pitch = 0;
        way(
            "cuMemAllocPitch, 1,000 B × 1,000", 4096,
            [&](CUdeviceptr* to) { return CU(cuMemAllocPitch_v2)(to, &pitch, 1000, 1000, 4); }, free);
        way(
            "cuMemAllocManaged of 64 MiB", kBytes,
            [](CUdeviceptr* to) { return CU(cuMemAllocManaged)(to, kBytes, CU_MEM_ATTACH_GLOBAL); }, free);
    }

    CUresult trim(CUmemoryPool pool) {
        const CUresult result = CU(cuStreamSynchronize)(stream_);
        return result == CUDA_SUCCESS ? CU(cuMemPoolTrimTo)(pool, 0) : result;
    }

    void pools() {
        CUmemoryPool pool = nullptr;
        if (CU(cuDeviceGetDefaultMemPool)(&pool, gpu_.device) != CUDA_SUCCESS)
            return rows_.row("no memory pools here");
        const auto give = [&](CUdeviceptr memory) {
            const CUresult result = CU(cuMemFreeAsync)(memory, stream_);
            return result == CUDA_SUCCESS ? trim(pool) : result;
        };
        way(
            "cuMemAllocAsync of 64 MiB", kBytes,
            [&](CUdeviceptr* to) { return CU(cuMemAllocAsync)(to, kBytes, stream_); }, give);
        CUmemPoolProps properties{};
        properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {gpu_.device}};
        if (rows_.attempt("cuMemPoolCreate", CU(cuMemPoolCreate)(&pool, &properties)) != CUDA_SUCCESS)
            return;
        way(
            "cuMemAllocFromPoolAsync of 64 MiB", kBytes,
            [&](CUdeviceptr* to) { return CU(cuMemAllocFromPoolAsync)(to, kBytes, pool, stream_); }, give);
        rows_.attempt("cuMemPoolDestroy", CU(cuMemPoolDestroy)(pool));
    }

    void virtual_memory() {
        CUmemAllocationProp properties{};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {gpu_.device}};
        CUmemGenericAllocationHandle handle = 0;
        way(
            "cuMemCreate and cuMemMap of 64 MiB", kBytes,
            [&](CUdeviceptr* to) {
                const CUresult result = CU(cuMemCreate)(&handle, kBytes, &properties, 0);
                if (result != CUDA_SUCCESS)
                    return result;
                MUST(cuMemAddressReserve, to, kBytes, 0, 0, 0);
                MUST(cuMemMap, *to, kBytes, 0, handle, 0);
                const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
                return CU(cuMemSetAccess)(*to, kBytes, &access, 1);
            },
            [&](CUdeviceptr memory) {
                MUST(cuMemUnmap, memory, kBytes);
                MUST(cuMemAddressFree, memory, kBytes);
                return CU(cuMemRelease)(handle);
            });
    }

    CUgraphExec end_capture() {
        CUgraph graph = nullptr;
        CUgraphExec executable = nullptr;
        MUST(cuStreamEndCapture, stream_, &graph);
        MUST(cuGraphInstantiateWithFlags, &executable, graph, 0);
        MUST(cuGraphDestroy, graph);
        return executable;
    }

    // Memory comes and goes during a capture, which a cache mustn't break: relaxed, so that the driver allows it.
    void captured() {
        CUdeviceptr from = 0, to = 0, during = 0, kept = 0;
        MUST(cuMemAlloc_v2, &from, kBytes);
        MUST(cuMemAlloc_v2, &to, kBytes);
        MUST(cuMemAlloc_v2, &kept, kBytes);
        MUST(cuStreamBeginCapture_v2, stream_, CU_STREAM_CAPTURE_MODE_RELAXED);
        MUST(cuMemsetD32Async, from, ++pattern_, kBytes / 4, stream_);
        const CUresult allocated = CU(cuMemAlloc_v2)(&during, kBytes);
        MUST(cuMemcpyDtoDAsync_v2, to, from, kBytes, stream_);
        const CUresult freed = CU(cuMemFree_v2)(kept);
        const CUgraphExec executable = end_capture();
        rows_.attempt("a capture; cuMemAlloc during it", allocated);
        rows_.attempt("cuMemFree during it", freed);
        for (int i = 0; i < 2; i++)
            MUST(cuGraphLaunch, executable, stream_);
        MUST(cuStreamSynchronize, stream_);
        expect(holds(to, kBytes, pattern_), "launched twice");
        MUST(cuGraphExecDestroy, executable);
        for (CUdeviceptr memory : {from, to, allocated == CUDA_SUCCESS ? during : 0})
            if (memory)
                MUST(cuMemFree_v2, memory);
        rows_.row("freed");
    }

    // An allocation that is captured is the graph's own.
    void graph_memory() {
        CUdeviceptr inside = 0, to = 0;
        MUST(cuMemAlloc_v2, &to, kBytes);
        MUST(cuStreamBeginCapture_v2, stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        const CUresult allocated = CU(cuMemAllocAsync)(&inside, kBytes, stream_);
        if (allocated == CUDA_SUCCESS) {
            MUST(cuMemsetD32Async, inside, ++pattern_, kBytes / 4, stream_);
            MUST(cuMemcpyDtoDAsync_v2, to, inside, kBytes, stream_);
            MUST(cuMemFreeAsync, inside, stream_);
        }
        const CUgraphExec executable = end_capture();
        rows_.attempt("a graph that allocates 64 MiB", allocated);
        MUST(cuGraphLaunch, executable, stream_);
        MUST(cuStreamSynchronize, stream_);
        expect(allocated != CUDA_SUCCESS || holds(to, kBytes, pattern_), "launched");
        MUST(cuGraphExecDestroy, executable);
        MUST(cuDeviceGraphMemTrim, gpu_.device);
        MUST(cuMemFree_v2, to);
        rows_.row("destroyed, trimmed and freed");
    }

    // A kernel writes 2 into the block 100 ms from now. Whoever gets the memory after it was freed must not see that.
    void freed_in_use() {
        if (kernels_are_skipped())
            return rows_.row("freed in use: not asked, no kernel is run here");
        const CUfunction meet = kernel(load_kernels("kernels.ptx"), "meet");
        CUdeviceptr block = 0, next = 0, never = 0, none = 0;
        MUST(cuMemAlloc_v2, &never, 4096);
        MUST(cuMemsetD32_v2, never, 0, 1024);
        MUST(cuMemAlloc_v2, &block, kBytes);
        uint64_t most = 100'000'000;
        void* arguments[] = {&none, &never, &block, &most};
        MUST(cuLaunchKernel, meet, 1, 1, 1, 1, 1, 1, 0, stream_, arguments, nullptr);
        MUST(cuMemFree_v2, block);
        const bool waited = CU(cuStreamQuery)(stream_) == CUDA_SUCCESS;
        MUST(cuMemAlloc_v2, &next, kBytes);
        CUstream other = nullptr;
        MUST(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
        MUST(cuMemsetD32Async, next, ++pattern_, kBytes / 4, other);
        MUST(cuStreamSynchronize, other);
        MUST(cuStreamSynchronize, stream_);
        expect(holds(next, kBytes, pattern_), std::string("freed while a kernel writes to it (cuMemFree ") +
                                                  (waited ? "waited" : "did not wait") + "), and taken again");
        MUST(cuMemFree_v2, next);
        MUST(cuMemFree_v2, never);
        MUST(cuStreamDestroy_v2, other);
    }

    Gpu gpu_;
    Rows rows_;
    CUstream stream_ = nullptr;
    unsigned pattern_ = 0x5eed0000;
    int wrong_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    Gpu gpu = find_gpu();
    open_context(gpu);
    size_t free = 0, total = 0;
    MUST(cuMemGetInfo_v2, &free, &total);
    tell("total", total);
    tell("free", free);
    Ways ways(gpu);
    ways.all();
    if (argc > 1)
        ways.idle(std::atol(argv[1]));
    CUdeviceptr block = 0;
    MUST(cuMemAlloc_v2, &block, kBytes);
    tell("got", kBytes);
    if (const auto counted = counted_bytes(gpu.uuid))
        tell("counted", *counted);
    held();
    tell("result", ways.wrong() ? std::to_string(ways.wrong()) + " wrong" : std::string("right"));
    return ways.wrong() ? 1 : 0;
}
