// The preloaded library's own objects in the test's own process, where the calls of a program are looked at from
// within: eight fake GPUs with a limit and a cache each, and a recording.
#pragma once

#include "shim/process/process.h"
#include "tests/catch.h"

namespace cuslice::tests {

/// The same for all tests of a process, which is set up once.
struct Within {
    Within();
    /// A context of this GPU, current in this thread.
    static CUcontext use(CUdevice device);
    static CUdeviceptr allocate(std::size_t bytes);
};

}  // namespace cuslice::tests
