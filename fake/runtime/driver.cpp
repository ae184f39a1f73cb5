// SPDX-License-Identifier: Apache-2.0
#include "fake/runtime/driver.h"

#include "fake/runtime/report.h"

#include <dlfcn.h>
#include <cstdlib>
#include <cstring>

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

void* find_driver_function(const char* name, int version, cuuint64_t flags) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    if (ask_driver(name, &function, version, flags, &status) != CUDA_SUCCESS || status != CU_GET_PROC_ADDRESS_SUCCESS) {
        return nullptr;
    }
    return function;
}

const PrivateDriver* private_driver() {
    static const PrivateDriver* const found = [] {
        const char* way = std::getenv("CUSLICE_FAKE_RUNTIME");
        const bool exported = way != nullptr && std::strcmp(way, "public") == 0;
        return exported ? nullptr
                        : static_cast<const PrivateDriver*>(
                              find_driver_function(kPrivateDriver, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT));
    }();
    return found;
}

void log_missing(const char* name, int version) {
    log_line("fake CUDA runtime: the driver has no %s of CUDA %d.%d; the call fails with error 801", name,
             version / 1000, version % 1000 / 10);
}

}  // namespace cuslice::fake
