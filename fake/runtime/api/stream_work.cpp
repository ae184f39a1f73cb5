// SPDX-License-Identifier: Apache-2.0
// Work that is put on a stream, and queries of the stream. Built twice: legacy and per-thread default stream (_ptsz).

#include "fake/runtime/forward.h"

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

CUSLICE_FORWARD_STREAM(cudaStreamSynchronize, cuStreamSynchronize, 2000, stream)
CUSLICE_FORWARD_STREAM(cudaStreamQuery, cuStreamQuery, 2000, stream)
CUSLICE_FORWARD_STREAM(cudaStreamWaitEvent, cuStreamWaitEvent, 3020, stream, event, flags)
CUSLICE_FORWARD_STREAM(cudaStreamGetFlags, cuStreamGetFlags, 5050, stream, flags)
CUSLICE_FORWARD_STREAM(cudaStreamGetPriority, cuStreamGetPriority, 5050, stream, priority)
CUSLICE_FORWARD_STREAM(cudaStreamGetId, cuStreamGetId, 12000, stream, id)

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
    if (device == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        CUdevice found = 0;
        const CUresult result = CU_STREAM(cuStreamGetDevice, 12080)(stream, &found);
        for (int ordinal = 0; result == CUDA_SUCCESS && ordinal < device_count(); ++ordinal) {
            CUdevice handle = 0;
            if (device_handle(ordinal, &handle) == cudaSuccess && handle == found)
                *device = ordinal;
        }
        return result;
    });
}

CUSLICE_FORWARD_STREAM(cudaStreamAttachMemAsync, cuStreamAttachMemAsync, 6000, stream, pointer, length, flags)

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned int flags) {
    if (function == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        auto* const callback = static_cast<Callback*>(std::malloc(sizeof(Callback)));
        if (callback == nullptr)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *callback = {function, data};
        const CUresult result = CU_STREAM(cuStreamAddCallback, 5000)(stream, call_back, callback, flags);
        if (result != CUDA_SUCCESS)
            std::free(callback);
        return result;
    });
}

CUSLICE_FORWARD_STREAM(cudaLaunchHostFunc, cuLaunchHostFunc, 10000, stream, function, data)
CUSLICE_FORWARD_STREAM(cudaStreamCopyAttributes, cuStreamCopyAttributes, 11000, destination, source)
CUSLICE_FORWARD_STREAM(cudaStreamGetAttribute, cuStreamGetAttribute, 11000, stream, attribute, value)
CUSLICE_FORWARD_STREAM(cudaStreamSetAttribute, cuStreamSetAttribute, 11000, stream, attribute, value)
CUSLICE_FORWARD_STREAM(cudaEventRecord, cuEventRecord, 2000, event, stream)
CUSLICE_FORWARD_STREAM(cudaEventRecordWithFlags, cuEventRecordWithFlags, 11010, event, stream, flags)
