// Host functions in streams: they really run, in a thread of the driver.

#include "fake/driver/stream_pair.h"

using namespace cuslice::fake;

namespace {

CUresult launch_host(CUstream handle, CUhostFn function, void* data, DefaultStream form) {
    Stream* stream = nullptr;
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = find_stream(handle, form, stream); bad != CUDA_SUCCESS) return bad;
    return submit_host(*stream, [function, data] { function(data); });
}

CUresult add_callback(CUstream handle, CUstreamCallback callback, void* data, unsigned flags, DefaultStream form) {
    Stream* stream = nullptr;
    if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = find_stream(handle, form, stream); bad != CUDA_SUCCESS) return bad;
    if (const CUresult bad = refuse_in_capture(*stream); bad != CUDA_SUCCESS) return bad;
    return submit_host(*stream, [handle, callback, data] { callback(handle, CUDA_SUCCESS, data); });
}

}  // namespace

CUSLICE_STREAM_PAIR(cuLaunchHostFunc, launch_host, (CUstream stream, CUhostFn function, void* data), stream, function,
                    data)
CUSLICE_STREAM_PAIR(cuStreamAddCallback, add_callback,
                    (CUstream stream, CUstreamCallback callback, void* data, unsigned int flags), stream, callback,
                    data, flags)
