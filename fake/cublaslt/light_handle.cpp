// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's handles, and what the library says of itself.

#include "fake/cublas/handle.h"
#include "fake/cublas/status.h"
#include "fake/cublaslt/descriptor.h"
#include "fake/libraries/gpu_work.h"
#include "fake/libraries/live_handles.h"

#include <atomic>

namespace cuslice::fake {
namespace {

/// Object behind a cublasLtHandle_t.
struct LightHandle {
    LightHandle* next;
};

constinit LiveHandles<LightHandle> handles;
// cublasLt.h names no default; the library's is read and set by the next two functions alone.
constinit std::atomic<size_t> cache_capacity{8192};

}  // namespace

CublasStatus check_light_handle(const void* handle) {
    if (handle == nullptr)
        return CublasStatus::not_initialized;
    if (handles.has(static_cast<const LightHandle*>(handle)))
        return CublasStatus::success;
    // cuBLAS's manual: "cublasHandle_t … can be passed to cuBLASLt". That one is another library's.
    return static_cast<const CublasHandle*>(handle)->mark == kCublasMark ? CublasStatus::success
                                                                         : CublasStatus::not_initialized;
}

}  // namespace cuslice::fake

using namespace cuslice::fake;

extern "C" {

CublasStatus cublasLtCreate(void** out) {
    if (out == nullptr)
        return CublasStatus::invalid_value;
    *out = nullptr;
    CUSLICE_TRY(create_status(load_kernel()));
    LightHandle* handle = handles.create();
    if (handle == nullptr)
        return CublasStatus::alloc_failed;
    *out = handle;
    return CublasStatus::success;
}

CublasStatus cublasLtDestroy(void* handle) {
    return handles.destroy(static_cast<LightHandle*>(handle)) ? CublasStatus::success : CublasStatus::not_initialized;
}

size_t cublasLtGetVersion() { return kVersionNumber; }

size_t cublasLtGetCudartVersion() { return kLibraryVersion.cudart; }

CublasStatus cublasLtGetProperty(int property, int* value) { return library_property(property, value); }

const char* cublasLtGetStatusName(CublasStatus status) { return status_name(status); }

const char* cublasLtGetStatusString(CublasStatus status) { return status_text(status); }

CublasStatus cublasLtHeuristicsCacheGetCapacity(size_t* capacity) {
    if (capacity == nullptr)
        return CublasStatus::invalid_value;
    *capacity = cache_capacity.load();
    return CublasStatus::success;
}

CublasStatus cublasLtHeuristicsCacheSetCapacity(size_t capacity) {
    cache_capacity.store(capacity);
    return CublasStatus::success;
}

}  // extern "C"
