// SPDX-License-Identifier: Apache-2.0
// Finds the calls that a stream's capture forbids to the thread that captures: each call is made in the midst of a
// capture, once as the thread is and once with its own mode relaxed (cuThreadExchangeStreamCaptureMode), as cuslice
// makes its own calls. One row of Markdown a call: what it returned, and whether the capture goes on.
#include <cstdio>
#include <functional>
#include <string>

#include "lab/hardware/driver.h"

using namespace cuslice::check;

namespace {

constexpr size_t kBytes = 4 << 20;

class Captures {
  public:
    explicit Captures(const Gpu& gpu) : gpu_(gpu) {
        MUST(cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
        MUST(cuStreamCreate, &other_, CU_STREAM_NON_BLOCKING);
        MUST(cuMemAlloc_v2, &block_, kBytes);
        MUST(cuEventCreate, &event_, CU_EVENT_DISABLE_TIMING);
        MUST(cuEventRecord, event_, other_);
        MUST(cuDeviceGetDefaultMemPool, &pool_, gpu_.device);
        MUST(cuMemAllocAsync, &pooled_, kBytes, other_);
        MUST(cuStreamSynchronize, other_);
        std::printf("| call in the midst of a capture | result | capture | thread relaxed: result | capture |\n");
        std::printf("|---|---|---|---|---|\n");
    }

    using Call = std::function<CUresult()>;

    // `undo` is called after the capture's end where the call succeeded.
    void ask(
        const char* what, const Call& call, const Call& undo = [] { return CUDA_SUCCESS; }) {
        std::string row = std::string("| ") + what + " |";
        for (const bool relaxed : {false, true}) {
            CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
            MUST(cuStreamBeginCapture_v2, stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
            MUST(cuMemsetD32Async, block_, 7, kBytes / 4, stream_);
            if (relaxed)
                MUST(cuThreadExchangeStreamCaptureMode, &mode);
            const CUresult result = call();
            if (relaxed)
                MUST(cuThreadExchangeStreamCaptureMode, &mode);
            CUgraph graph = nullptr;
            const bool captures = CU(cuMemsetD32Async)(block_, 7, kBytes / 4, stream_) == CUDA_SUCCESS;
            const CUresult ended = CU(cuStreamEndCapture)(stream_, &graph);
            if (graph != nullptr)
                MUST(cuGraphDestroy, graph);
            if (result == CUDA_SUCCESS)
                undo();
            row += std::string(" ") + name_of(result) + " | " +
                   (ended != CUDA_SUCCESS ? name_of(ended)
                    : captures            ? "goes on"
                                          : "**goes on, refuses nodes**") +
                   " |";
        }
        std::printf("%s\n", row.c_str());
        std::fflush(stdout);
    }

    void ask_all() {
        about_contexts();
        about_memory();
        about_pools();
        about_work();
        about_graphs();
    }

  private:
    void about_contexts() {
        CUcontext context = nullptr;
        CUdevice device = 0;
        int value = 0;
        unsigned flags = 0;
        size_t limit = 0;
        ask("nothing", [] { return CUDA_SUCCESS; });
        ask("cuCtxGetCurrent", [&] { return CU(cuCtxGetCurrent)(&context); });
        ask("cuCtxGetDevice", [&] { return CU(cuCtxGetDevice)(&device); });
        ask(
            "cuCtxPushCurrent_v2", [&] { return CU(cuCtxPushCurrent_v2)(gpu_.context); },
            [&] { return CU(cuCtxPopCurrent_v2)(&context); });
        ask("cuCtxSetCurrent", [&] { return CU(cuCtxSetCurrent)(gpu_.context); });
        ask("cuCtxGetLimit", [&] { return CU(cuCtxGetLimit)(&limit, CU_LIMIT_STACK_SIZE); });
        ask("cuCtxSetLimit", [&] { return CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 1024); });
        ask("cuDeviceGetAttribute",
            [&] { return CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_INTEGRATED, gpu_.device); });
        ask("cuDevicePrimaryCtxGetState", [&] { return CU(cuDevicePrimaryCtxGetState)(gpu_.device, &flags, &value); });
        ask(
            "cuDevicePrimaryCtxRetain", [&] { return CU(cuDevicePrimaryCtxRetain)(&context, gpu_.device); },
            [&] { return CU(cuDevicePrimaryCtxRelease_v2)(gpu_.device); });
        CUmodule module = nullptr;
        ask("cuModuleLoadData of an image that is none", [&] { return CU(cuModuleLoadData)(&module, "none"); });
    }

    void about_memory() {
        size_t free = 0, total = 0, size = 0;
        CUdeviceptr made = 0, base = 0;
        void* host = nullptr;
        CUmemorytype type = CU_MEMORYTYPE_DEVICE;
        const auto free_made = [&] { return CU(cuMemFree_v2)(made); };
        ask("cuMemGetInfo_v2", [&] { return CU(cuMemGetInfo_v2)(&free, &total); });
        ask(
            "cuMemAlloc_v2", [&] { return CU(cuMemAlloc_v2)(&made, kBytes); }, free_made);
        ask("cuMemAlloc_v2 of more than there is", [&] { return CU(cuMemAlloc_v2)(&made, size_t{1} << 50); });
        ask(
            "cuMemAllocManaged", [&] { return CU(cuMemAllocManaged)(&made, kBytes, CU_MEM_ATTACH_GLOBAL); }, free_made);
        ask(
            "cuMemHostAlloc", [&] { return CU(cuMemHostAlloc)(&host, kBytes, 0); },
            [&] { return CU(cuMemFreeHost)(host); });
        MUST(cuMemAlloc_v2, &made, kBytes);
        ask(
            "cuMemFree_v2", [&] { return CU(cuMemFree_v2)(made); }, [&] { return CU(cuMemAlloc_v2)(&made, kBytes); });
        CU(cuMemFree_v2)(made);
        ask("cuMemFree_v2 of what is none", [&] { return CU(cuMemFree_v2)(0x1234); });
        ask("cuMemGetAddressRange_v2", [&] { return CU(cuMemGetAddressRange_v2)(&base, &size, block_); });
        ask("cuPointerGetAttribute",
            [&] { return CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block_); });
        ask("cuPointerGetAttribute of what is none",
            [&] { return CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1234); });
        unsigned on = 1;
        ask("cuPointerSetAttribute",
            [&] { return CU(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pooled_); });
        CUipcMemHandle shared;
        ask("cuIpcGetMemHandle", [&] { return CU(cuIpcGetMemHandle)(&shared, block_); });
        CUmemAllocationProp properties{};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {gpu_.device}};
        CUmemGenericAllocationHandle handle = 0;
        ask(
            "cuMemCreate", [&] { return CU(cuMemCreate)(&handle, kBytes, &properties, 0); },
            [&] { return CU(cuMemRelease)(handle); });
        CUdeviceptr address = 0;
        MUST(cuMemCreate, &handle, kBytes, &properties, 0);
        MUST(cuMemAddressReserve, &address, kBytes, 0, 0, 0);
        ask(
            "cuMemMap", [&] { return CU(cuMemMap)(address, kBytes, 0, handle, 0); },
            [&] { return CU(cuMemUnmap)(address, kBytes); });
        CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        MUST(cuMemMap, address, kBytes, 0, handle, 0);
        ask("cuMemSetAccess", [&] { return CU(cuMemSetAccess)(address, kBytes, &access, 1); });
        ask(
            "cuMemUnmap", [&] { return CU(cuMemUnmap)(address, kBytes); },
            [&] { return CU(cuMemMap)(address, kBytes, 0, handle, 0); });
        CU(cuMemUnmap)(address, kBytes);
        MUST(cuMemRelease, handle);
        MUST(cuMemAddressFree, address, kBytes);
    }

    void about_pools() {
        CUmemoryPool pool = nullptr;
        cuuint64_t bytes = 0;
        CUdeviceptr made = 0;
        ask("cuDeviceGetMemPool", [&] { return CU(cuDeviceGetMemPool)(&pool, gpu_.device); });
        ask("cuDeviceGetDefaultMemPool", [&] { return CU(cuDeviceGetDefaultMemPool)(&pool, gpu_.device); });
        ask("cuMemPoolGetAttribute, reserved",
            [&] { return CU(cuMemPoolGetAttribute)(pool_, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes); });
        ask("cuMemPoolGetAttribute, used",
            [&] { return CU(cuMemPoolGetAttribute)(pool_, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes); });
        ask("cuMemPoolTrimTo", [&] { return CU(cuMemPoolTrimTo)(pool_, 0); });
        ask("cuDeviceGetGraphMemAttribute", [&] {
            return CU(cuDeviceGetGraphMemAttribute)(gpu_.device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes);
        });
        ask("cuDeviceGraphMemTrim", [&] { return CU(cuDeviceGraphMemTrim)(gpu_.device); });
        ask(
            "cuMemAllocAsync on another stream", [&] { return CU(cuMemAllocAsync)(&made, kBytes, other_); },
            [&] { return CU(cuMemFreeAsync)(made, other_); });
        MUST(cuMemAllocAsync, &made, kBytes, other_);
        ask(
            "cuMemFreeAsync on another stream", [&] { return CU(cuMemFreeAsync)(made, other_); },
            [&] { return CU(cuMemAllocAsync)(&made, kBytes, other_); });
        CU(cuMemFreeAsync)(made, other_);
        MUST(cuStreamSynchronize, other_);
        ask("cuMemFreeAsync on the stream, of what the graph hasn't",
            [&] { return CU(cuMemFreeAsync)(pooled_, stream_); });
        ask("cuMemPoolGetAttribute after cuMemAllocAsync on the stream", [&] {
            const CUresult allocated = CU(cuMemAllocAsync)(&made, kBytes, stream_);
            if (allocated != CUDA_SUCCESS)
                return allocated;
            const CUresult asked = CU(cuMemPoolGetAttribute)(pool_, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
            const CUresult back = CU(cuMemFreeAsync)(made, stream_);
            return asked != CUDA_SUCCESS ? asked : back;
        });
    }

    void about_work() {
        CUevent made = nullptr;
        CUcontext context = nullptr;
        CUdevice device = 0;
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        ask("cuStreamIsCapturing", [&] { return CU(cuStreamIsCapturing)(stream_, &status); });
        ask("cuStreamIsCapturing of another stream", [&] { return CU(cuStreamIsCapturing)(other_, &status); });
        ask("cuStreamGetCtx", [&] { return CU(cuStreamGetCtx)(stream_, &context); });
        ask("cuStreamGetDevice", [&] { return CU(cuStreamGetDevice)(stream_, &device); });
        ask(
            "cuEventCreate", [&] { return CU(cuEventCreate)(&made, CU_EVENT_DISABLE_TIMING); },
            [&] { return CU(cuEventDestroy_v2)(made); });
        MUST(cuEventCreate, &made, CU_EVENT_DISABLE_TIMING);
        ask(
            "cuEventDestroy_v2", [&] { return CU(cuEventDestroy_v2)(made); },
            [&] { return CU(cuEventCreate)(&made, CU_EVENT_DISABLE_TIMING); });
        CU(cuEventDestroy_v2)(made);
        ask("cuEventRecord on another stream", [&] { return CU(cuEventRecord)(event_, other_); });
        ask("cuEventQuery of a recorded one", [&] { return CU(cuEventQuery)(event_); });
        ask("cuEventSynchronize of a recorded one", [&] { return CU(cuEventSynchronize)(event_); });
        ask("cuCtxRecordEvent", [&] { return CU(cuCtxRecordEvent)(gpu_.context, event_); });
        MUST(cuEventRecord, event_, other_);
        ask("cuStreamQuery of another stream", [&] { return CU(cuStreamQuery)(other_); });
        ask("cuStreamQuery", [&] { return CU(cuStreamQuery)(stream_); });
        ask("cuStreamSynchronize of another stream", [&] { return CU(cuStreamSynchronize)(other_); });
        ask("cuStreamSynchronize", [&] { return CU(cuStreamSynchronize)(stream_); });
        ask("cuCtxSynchronize", [&] { return CU(cuCtxSynchronize)(); });
        ask("cuMemsetD32_v2", [&] { return CU(cuMemsetD32_v2)(pooled_, 7, 1); });
        unsigned value = 0;
        ask("cuMemcpyDtoH_v2", [&] { return CU(cuMemcpyDtoH_v2)(&value, pooled_, sizeof value); });
        CUstream stream = nullptr;
        ask(
            "cuStreamCreate", [&] { return CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING); },
            [&] { return CU(cuStreamDestroy_v2)(stream); });
    }

    void about_graphs() {
        CUgraph graph = nullptr;
        CUgraphExec instance = nullptr;
        ask(
            "cuGraphCreate", [&] { return CU(cuGraphCreate)(&graph, 0); }, [&] { return CU(cuGraphDestroy)(graph); });
        MUST(cuGraphCreate, &graph, 0);
        size_t count = 0;
        ask("cuGraphGetNodes", [&] { return CU(cuGraphGetNodes)(graph, nullptr, &count); });
        ask(
            "cuGraphInstantiateWithFlags", [&] { return CU(cuGraphInstantiateWithFlags)(&instance, graph, 0); },
            [&] { return CU(cuGraphExecDestroy)(instance); });
        MUST(cuGraphInstantiateWithFlags, &instance, graph, 0);
        ask("cuGraphLaunch on another stream", [&] { return CU(cuGraphLaunch)(instance, other_); });
        ask(
            "cuGraphExecDestroy", [&] { return CU(cuGraphExecDestroy)(instance); },
            [&] { return CU(cuGraphInstantiateWithFlags)(&instance, graph, 0); });
    }

    Gpu gpu_;
    CUstream stream_ = nullptr, other_ = nullptr;
    CUdeviceptr block_ = 0, pooled_ = 0;
    CUevent event_ = nullptr;
    CUmemoryPool pool_ = nullptr;
};

}  // namespace

int main() {
    Gpu gpu = find_gpu();
    open_context(gpu);
    Captures(gpu).ask_all();
}
