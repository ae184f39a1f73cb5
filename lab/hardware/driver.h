// SPDX-License-Identifier: Apache-2.0
#pragma once
// The driver as any program finds it: dlopen("libcuda.so.1") and dlsym, so that no stub library is needed to build
// these checks and a driver that lacks a function is no obstacle to the others. cuda.h is taken with every old form
// under its own name, so names here are exported ones: cuMemAlloc_v2, not cuMemAlloc.
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice::check {

/// The handle of libcuda.so.1; ends the program with a line if there is none.
void* driver_library();
/// An exported function's address, null if the driver lacks it.
void* find(const char* symbol);
/// The same, but ends the program with a line that names what is missing.
void* require(const char* symbol);

/// "CUDA_ERROR_OUT_OF_MEMORY"; "error 4711" for one that the driver itself can't name.
const char* name_of(CUresult result);

/// Ends the program with a line if the call failed.
void must(CUresult result, const char* call);

/// The first GPU of this process: its primary context is made current and stays.
struct Gpu {
    CUdevice device = -1;
    CUcontext context = nullptr;
    char name[128] = {};
    char uuid[48] = {};
};
/// cuInit and the device, no context yet; ends the program if there is no GPU.
Gpu find_gpu();
void open_context(Gpu& gpu);

/// True on cuslice's fake GPU, which checks kernels and doesn't run them.
bool kernels_are_skipped();

/// kernels.fatbin or kernels.ptx, from the program's own folder.
CUmodule load_kernels(const char* file);
CUfunction kernel(CUmodule module, const char* name);

}  // namespace cuslice::check

// CU(cuMemAlloc_v2)(…): the driver's function with its type, looked up once.
#define CU(symbol)                                                                                            \
    ([] {                                                                                                     \
        static const auto found_ = reinterpret_cast<decltype(&::symbol)>(::cuslice::check::require(#symbol)); \
        return found_;                                                                                        \
    }())

// CU(…) that has to succeed.
#define MUST(symbol, ...) (::cuslice::check::must(CU(symbol)(__VA_ARGS__), #symbol))
