// SPDX-License-Identifier: Apache-2.0
// By which way a guest comes to the driver's functions. Under a slice every one of them has to end in libcuslice.so.
#pragma once

#include <string>

#include "virtual_gpu/driver/cuda_api.h"

namespace guest {

struct Driver {
#define GUEST_FUNCTION(symbol, name, version) decltype(&::symbol) symbol = nullptr;
#include "tests/preload/guest/functions.def"
    // The per-thread forms, which have no declaration of their own.
    decltype(&::cuMemAllocAsync) cuMemAllocAsync_ptsz = nullptr;
    decltype(&::cuMemFreeAsync) cuMemFreeAsync_ptsz = nullptr;
};

/// Fills the table by one of these routes; otherwise false, and why:
///   linked          (only in guest_linked, which names the driver as a library it needs)
///   dlopen=NAME     dlopen and dlsym
///   dlmopen=NAME    the same in a namespace of its own
///   base-dlmopen=NAME  dlmopen in the program's namespace
///   deepbind=FILE   a module, linked to libcuda.so.1 and opened with RTLD_DEEPBIND, calls
///   module=FILE,ROUTE      a module, opened as any, which takes this route
///   deepmodule=FILE,ROUTE  the same, opened with RTLD_DEEPBIND
///   v1, v2          cuGetProcAddress and cuGetProcAddress_v2, themselves from dlsym
///   nested          cuGetProcAddress_v2 as looked up by cuGetProcAddress as looked up by cuGetProcAddress
///   flag2           as v2, with CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
bool fill(Driver& driver, const std::string& route, std::string& why);

}  // namespace guest
