// SPDX-License-Identifier: Apache-2.0
// Host functions in streams: they really run, in a thread of the driver.

#include "fake/driver/stream_pair.h"
#include "fake/driver/submit.h"

using namespace cuslice::fake;

namespace {

CUresult launch_host(CUstream handle, CUhostFn function, void* data, DefaultStream form) {
    if (function == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_STREAM(stream, handle, form);
    return submit_host(*stream, captured_work(node_params(CUDA_HOST_NODE_PARAMS{function, data}),
                                              [function, data] { function(data); }));
}

}  // namespace

CUSLICE_STREAM_PAIR(cuLaunchHostFunc, launch_host, stream, function, data)
