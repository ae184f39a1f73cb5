// What is put on a stream, or asked of it. Built twice: legacy and per-thread default stream (_ptsz).

#include "fake/runtime/state.h"

#include <cstdlib>

using namespace cuslice::fake;

namespace {

struct Callback {
    cudaStreamCallback_t function;
    void* data;
};

// The driver's callback has a CUresult where the runtime's has a cudaError_t.
void call_back(CUstream stream, CUresult status, void* data) {
    auto* const callback = static_cast<Callback*>(data);
    const Callback call = *callback;
    std::free(callback);
    call.function(stream, as_error(status), call.data);
}

}  // namespace

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return in_context(CU_STREAM(cuStreamSynchronize, 2000), stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) { return in_context(CU_STREAM(cuStreamQuery, 2000), stream); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
    return in_context(CU_STREAM(cuStreamWaitEvent, 3020), stream, event, flags);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
    return in_context(CU_STREAM(cuStreamGetFlags, 5050), stream, flags);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
    return in_context(CU_STREAM(cuStreamGetPriority, 5050), stream, priority);
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
    return in_context(CU_STREAM(cuStreamGetId, 12000), stream, id);
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
    if (device == nullptr) return record(cudaErrorInvalidValue);
    return in_context([&] {
        CUdevice found = 0;
        const CUresult result = CU_STREAM(cuStreamGetDevice, 12080)(stream, &found);
        for (int ordinal = 0; result == CUDA_SUCCESS && ordinal < device_count(); ++ordinal) {
            CUdevice handle = 0;
            if (device_handle(ordinal, &handle) == cudaSuccess && handle == found) *device = ordinal;
        }
        return result;
    });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t length, unsigned int flags) {
    return in_context(CU_STREAM(cuStreamAttachMemAsync, 6000), stream, address(pointer), length, flags);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned int flags) {
    if (function == nullptr) return record(cudaErrorInvalidValue);
    return in_context([&] {
        auto* const callback = static_cast<Callback*>(std::malloc(sizeof(Callback)));
        if (callback == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
        *callback = {function, data};
        const CUresult result =
            CU_STREAM(cuStreamAddCallback, 5000)(stream, call_back, static_cast<void*>(callback), flags);
        if (result != CUDA_SUCCESS) std::free(callback);
        return result;
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
    return in_context(CU_STREAM(cuLaunchHostFunc, 10000), stream, function, data);
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t destination, cudaStream_t source) {
    return in_context(CU_STREAM(cuStreamCopyAttributes, 11000), destination, source);
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue* value) {
    return in_context(CU_STREAM(cuStreamGetAttribute, 11000), stream, static_cast<CUstreamAttrID>(attribute),
                      same_layout<CUstreamAttrValue>(value));
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue* value) {
    return in_context(CU_STREAM(cuStreamSetAttribute, 11000), stream, static_cast<CUstreamAttrID>(attribute),
                      same_layout<const CUstreamAttrValue>(value));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return in_context(CU_STREAM(cuEventRecord, 2000), event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
    return in_context(CU_STREAM(cuEventRecordWithFlags, 11010), event, stream, flags);
}
