// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <cstddef>

namespace cuslice::fake {

struct Binary;

/// A kernel as nvcc's host code registers it. Names are the program's own strings and live as long as its Binary.
struct RegisteredKernel {
    RegisteredKernel* next;
    Binary* binary;
    const void* host;
    const char* name;
};

/// A __device__, __constant__ or __managed__ variable. A managed one has memory of its own: `shadow` is the host
/// pointer through which the program reads it.
struct RegisteredVariable {
    RegisteredVariable* next;
    Binary* binary;
    const void* host;
    const char* name;
    size_t size;
    void** shadow;        ///< null: not managed
    CUdeviceptr managed;  ///< 0: no memory yet
    CUcontext owner;      ///< the context in which it was made
};

/// Module that was loaded from a binary into one context.
struct LoadedModule {
    LoadedModule* next;
    CUcontext context;
    unsigned long long context_id;  ///< handles are used again, ids are not
    CUmodule module;
};

/// One registered fat binary. Of its device code only the GPUs that it is for are looked at (device_code.h):
/// registration tells all names and sizes.
struct Binary {
    Binary* next;
    Binary* previous;
    RegisteredKernel* kernels;
    RegisteredVariable* variables;
    LoadedModule* loaded;
    const void* device_code = nullptr;  ///< the program's own, as long as this is registered
};

// All of these want the caller to hold Lock. Null or false: no host memory.
Binary* add_binary(const void* device_code);
void remove_binary(Binary* binary);
bool add_kernel(Binary* binary, const void* host, const char* name);
bool add_variable(Binary* binary, const void* host, const char* name, size_t size, void** shadow);

/// Null where nothing was registered for this host address.
RegisteredKernel* find_kernel(const void* host);
RegisteredVariable* find_variable(const void* host);

/// The context is gone with all that was loaded into it.
void forget_modules(CUcontext context);

}  // namespace cuslice::fake
