// SPDX-License-Identifier: Apache-2.0
#pragma once
#define __CUDA_API_VERSION_INTERNAL  // every form by its own name: no macro that turns one into another
#include <cuda.h>

namespace cuslice::bench {

// The functions that are measured, from one library.
struct Driver {
    decltype(&::cuInit) init = nullptr;
    decltype(&::cuDevicePrimaryCtxRetain) retain = nullptr;
    decltype(&::cuCtxSetCurrent) set_current = nullptr;
    decltype(&::cuCtxGetCurrent) get_current = nullptr;  // not hooked
    decltype(&::cuMemGetInfo_v2) memory_info = nullptr;
    decltype(&::cuCtxSynchronize) synchronize = nullptr;  // not hooked
    decltype(&::cuMemAlloc_v2) allocate = nullptr;
    decltype(&::cuMemFree_v2) free = nullptr;
    decltype(&::cuMemAllocAsync) allocate_async = nullptr;
    decltype(&::cuMemFreeAsync) free_async = nullptr;
    decltype(&::cuGetProcAddress_v2) look_up = nullptr;
    decltype(&::cuModuleLoadData) load_module = nullptr;
    decltype(&::cuModuleGetFunction) get_function = nullptr;
    decltype(&::cuLaunchKernel) launch = nullptr;  // not hooked
};

// The two in one process: what the program gets, and what lies beneath it.
struct TwoDrivers {
    Driver ours, raw;
    CUcontext context = nullptr;  // current in the calling thread
};

// Opens both and checks of each pointer which library it is in. `raw_path`: the driver beneath. Ends the program with a
// line on stderr if anything is not as it should be, as no figure would mean anything then.
TwoDrivers open_two_drivers(const char* raw_path);

// Ends the program unless `result` is success.
void must(CUresult result, const char* what);

// Allocates, or ends the program.
inline CUdeviceptr take(const Driver& driver, size_t bytes) {
    CUdeviceptr block = 0;
    must(driver.allocate(&block, bytes), "cuMemAlloc");
    return block;
}

// Asks for as much as the limit through both. True if ours refused it, being over the limit, and the driver beneath did
// not: so the limit is in force, and it is cuslice that enforces it.
bool limit_in_force(const TwoDrivers& drivers);

}  // namespace cuslice::bench
