// SPDX-License-Identifier: Apache-2.0
// The old way to launch: the function is told its block, its shared memory and its parameters one by one.

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "fake/driver/api_prologue.h"
#include "fake/driver/architecture.h"
#include "fake/driver/launch.h"
#include "fake/driver/module.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

constexpr unsigned kMostParameterBytes = 4096;

/// Calls `set` with the function, the driver's lock held.
template <typename Set>
CUresult with_function(CUfunction handle, Set set) {
    const DriverLock hold;
    CUSLICE_FIND_IN(function, functions, handle);
    return set(*function);
}

/// Parameters are checked where they are set, and kept nowhere: no kernel reads them.
CUresult set_parameter(CUfunction handle, int offset, const void* from, unsigned bytes) {
    return with_function(handle, [&](const Function&) {
        const bool fits = offset >= 0 && static_cast<unsigned>(offset) <= kMostParameterBytes &&
                          bytes <= kMostParameterBytes - static_cast<unsigned>(offset);
        return from != nullptr && fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

CUresult launch_grid(CUfunction handle, int width, int height, CUstream stream, DefaultStream form) {
    if (width < 1 || height < 1)
        return CUDA_ERROR_INVALID_VALUE;
    LaunchShape shape{{static_cast<unsigned>(width), static_cast<unsigned>(height), 1}, {}, 0};
    const CUresult found = with_function(handle, [&](const Function& function) {
        std::copy(std::begin(function.old_block), std::end(function.old_block), std::begin(shape.block));
        shape.shared = function.old_shared;
        return CUDA_SUCCESS;
    });
    if (found != CUDA_SUCCESS)
        return found;
    // H200, driver 580.159.04, 2026-11-27: a launch succeeds whatever parameters were set before.
    LaunchArguments arguments;
    arguments.said_before = true;
    return launch(handle, shape, stream, arguments, false, form);
}

}  // namespace

CUSLICE_ENTRY(cuFuncSetBlockShape, handle, x, y, z) {
    return with_function(handle, [&](Function& function) {
        if (x < 1 || y < 1 || z < 1)
            return CUDA_ERROR_INVALID_VALUE;
        const unsigned block[] = {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)};
        uint64_t threads = 1;
        for (int i = 0; i < 3; i++) {
            if (block[i] > kMaxBlock[i])
                return CUDA_ERROR_INVALID_VALUE;
            threads *= block[i];
        }
        if (threads > kMaxThreadsPerBlock)
            return CUDA_ERROR_INVALID_VALUE;
        std::copy(std::begin(block), std::end(block), std::begin(function.old_block));
        return CUDA_SUCCESS;
    });
}

CUSLICE_ENTRY(cuFuncSetSharedSize, handle, bytes) {
    return with_function(handle, [&](Function& function) {
        function.old_shared = bytes;
        return CUDA_SUCCESS;
    });
}

CUSLICE_ENTRY(cuParamSetSize, handle, bytes) {
    return with_function(handle, [&](const Function&) {
        return bytes <= kMostParameterBytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
}

CUSLICE_ENTRY(cuParamSeti, handle, offset, value) { return set_parameter(handle, offset, &value, sizeof value); }

CUSLICE_ENTRY(cuParamSetf, handle, offset, value) { return set_parameter(handle, offset, &value, sizeof value); }

CUSLICE_ENTRY(cuParamSetv, handle, offset, from, bytes) { return set_parameter(handle, offset, from, bytes); }

CUSLICE_ENTRY(cuLaunch, function) { return launch_grid(function, 1, 1, nullptr, DefaultStream::Legacy); }

CUSLICE_ENTRY(cuLaunchGrid, function, width, height) {
    return launch_grid(function, width, height, nullptr, DefaultStream::Legacy);
}

CUSLICE_ENTRY(cuLaunchGridAsync, function, width, height, stream) {
    return launch_grid(function, width, height, stream, DefaultStream::Legacy);
}
