// SPDX-License-Identifier: Apache-2.0
// The driver's functions, found as NVIDIA's runtimes 12 and 13 find them: by dlopen of the SONAME, then
// cuGetProcAddress_v2.

#include "fake/runtime/driver.h"

#include <dlfcn.h>

namespace cuslice::fake {
namespace {

constinit std::atomic<PFN_cuGetProcAddress_v12000> get_proc_address{nullptr};

}  // namespace

bool open_driver() {
    // Never closed: the driver outlives every function of the runtime, those that run at exit too.
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr)
        return false;
    auto function = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
    if (function == nullptr)
        return false;
    get_proc_address.store(function, std::memory_order_release);
    void* nothing = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    // NVIDIA's runtime goes on whatever the answer is.
    function("", &nothing, 0, CU_GET_PROC_ADDRESS_DEFAULT, &status);
    return true;
}

bool driver_is_open() { return get_proc_address.load(std::memory_order_acquire) != nullptr; }

CUresult ask_driver(const char* name, void** function, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult* status) {
    const auto ask = get_proc_address.load(std::memory_order_acquire);
    return ask == nullptr ? CUDA_ERROR_NOT_INITIALIZED : ask(name, function, version, flags, status);
}

}  // namespace cuslice::fake
