// SPDX-License-Identifier: Apache-2.0
#pragma once

// The preloaded library's interface for the runtime shim (libcuslice-runtime.so). Both are of one build.
namespace cuslice {

struct SplitView {
    // The library with this SONAME if it is loaded, past our own dlopen, which would answer with the facade before it.
    void* (*loaded)(const char* soname);
    // The driver has started, and the GPUs are known. False: programs hear why from the runtime.
    bool (*open)();
    int (*count)();
    // A virtual GPU's physical one; cudaInvalidDeviceId: there is none. And the virtual one that a physical one stands
    // for in this thread; -1: there is none.
    int (*physical_of)(int ordinal);
    int (*shown)(int physical);
    // The thread's; -1 if it has no context.
    int (*current)();
    bool (*siblings)(int a, int b);
    // Makes its primary context current, which the runtime has for as long as the process lives. A CUresult.
    int (*make_current)(int ordinal);
    // True if another partition of its GPU is in use.
    bool (*has_company)(int ordinal);
    // Resets a partition's primary context, which the runtime goes on using. A CUresult.
    int (*reset)(int ordinal);
    // Says once that the runtime with this function is too old to be stood before.
    void (*say_too_old)(const void* function);
    // Priority of a partition's streams that are made without naming one. False: the partition has none.
    bool (*priority_of)(int ordinal, int* priority);
};

}  // namespace cuslice

// Null where no GPU is split. Reads the configuration, the first time.
extern "C" const cuslice::SplitView* cuslice_split_view();
