// SPDX-License-Identifier: Apache-2.0
#include "fake/libraries/gpu_work.h"

#include "fake/runtime/driver.h"
#include "fake/try.h"

#include <pthread.h>

namespace cuslice::fake {
namespace {

// Without parameters, so that a launch needs none.
constexpr char kCode[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry cuslice_skipped_library_work()\n{\n    ret;\n}\n";
constexpr char kName[] = "cuslice_skipped_library_work";
constexpr int kContexts = 256;

struct LoadedKernel {
    CUcontext context;
    unsigned long long id;  // a later context may have the handle of an earlier one
    CUfunction function;
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
constinit bool tried = false;
constinit CUresult started = CUDA_ERROR_NOT_INITIALIZED;
constinit CUcontext primary = nullptr;
constinit LoadedKernel loaded[kContexts]{};
constinit int next = 0;

class Hold {
  public:
    Hold() { pthread_mutex_lock(&mutex); }
    ~Hold() { pthread_mutex_unlock(&mutex); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
};

CUresult start() {
    Hold hold;
    if (!tried) {
        started = open_driver() ? CU(cuInit, 2000)(0U) : CUDA_ERROR_NOT_INITIALIZED;
        tried = true;
    }
    return started;
}

LoadedKernel* find(CUcontext context, unsigned long long id) {
    for (LoadedKernel& one : loaded)
        if (one.function != nullptr && one.context == context && one.id == id)
            return &one;
    return nullptr;
}

CUresult load(CUcontext context, unsigned long long id, CUfunction* function) {
    CUmodule module = nullptr;
    const PrivateDriver* own = private_driver();
    CUSLICE_TRY(own != nullptr ? own->load_module(&module, kCode) : CU(cuModuleLoadData, 2000)(&module, kCode));
    CUSLICE_TRY(CU(cuModuleGetFunction, 2000)(function, module, kName));
    // The module stays as long as its context, as those of NVIDIA's runtime do.
    loaded[next] = {context, id, *function};
    next = (next + 1) % kContexts;
    return CUDA_SUCCESS;
}

/// `again`: what was loaded has gone, as after cudaDeviceReset, which leaves the context its handle.
CUresult kernel_of_current(CUfunction* function, bool again) {
    CUcontext context = nullptr;
    unsigned long long id = 0;
    CUSLICE_TRY(CU(cuCtxGetCurrent, 4000)(&context));
    CUSLICE_TRY(CU(cuCtxGetId, 12000)(context, &id));
    Hold hold;
    LoadedKernel* one = find(context, id);
    if (one == nullptr)
        return load(context, id, function);
    if (again) {
        one->function = nullptr;
        return load(context, id, function);
    }
    *function = one->function;
    return CUDA_SUCCESS;
}

}  // namespace

CUresult enter_context() {
    CUSLICE_TRY(start());
    CUcontext context = nullptr;
    CUSLICE_TRY(CU(cuCtxGetCurrent, 4000)(&context));
    if (context != nullptr)
        return CUDA_SUCCESS;
    {
        Hold hold;
        if (primary == nullptr) {
            CUdevice device = 0;
            CUSLICE_TRY(CU(cuDeviceGet, 2000)(&device, 0));
            const PrivateDriver* own = private_driver();
            CUSLICE_TRY(own != nullptr ? own->retain_primary(&primary, device)
                                       : CU(cuDevicePrimaryCtxRetain, 7000)(&primary, device));
        }
        context = primary;
    }
    return CU(cuCtxSetCurrent, 4000)(context);
}

CUresult load_kernel() {
    CUSLICE_TRY(enter_context());
    CUfunction function = nullptr;
    return kernel_of_current(&function, false);
}

CUresult launch_kernel(CUstream stream) {
    CUSLICE_TRY(enter_context());
    CUresult result = CUDA_SUCCESS;
    for (const bool again : {false, true}) {
        CUfunction function = nullptr;
        CUSLICE_TRY(kernel_of_current(&function, again));
        result = CU(cuLaunchKernel, 4000)(function, 1U, 1U, 1U, 1U, 1U, 1U, 0U, stream, nullptr, nullptr);
        if (result != CUDA_ERROR_INVALID_HANDLE)
            break;
        // Is it the function or the stream that is gone?
        int ignored = 0;
        if (CU(cuFuncGetAttribute, 2020)(&ignored, CU_FUNC_ATTRIBUTE_NUM_REGS, function) == CUDA_SUCCESS)
            break;
    }
    return result;
}

bool memory_is_there(const void* address, uint64_t bytes) {
    if (start() != CUDA_SUCCESS)
        return false;
    auto at = reinterpret_cast<CUdeviceptr>(address);
    if (bytes > ~at)
        return false;
    const CUdeviceptr end = at + bytes;
    // Memory that is mapped piece by piece consists of several ranges, one after the other.
    while (at < end) {
        CUdeviceptr from = 0;
        size_t size = 0;
        if (CU(cuPointerGetAttribute, 4000)(&from, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at) != CUDA_SUCCESS ||
            CU(cuPointerGetAttribute, 4000)(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at) != CUDA_SUCCESS || size == 0 ||
            from + size <= at) {
            return false;
        }
        at = from + size;
    }
    return true;
}

int current_architecture() {
    CUdevice device = 0;
    int major = 0;
    int minor = 0;
    if (start() != CUDA_SUCCESS || CU(cuCtxGetDevice, 2000)(&device) != CUDA_SUCCESS ||
        CU(cuDeviceGetAttribute, 2000)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS ||
        CU(cuDeviceGetAttribute, 2000)(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) != CUDA_SUCCESS) {
        return 0;
    }
    return major * 10 + minor;
}

}  // namespace cuslice::fake
