// SPDX-License-Identifier: Apache-2.0
// The driver's functions, found as NVIDIA's runtime 11 finds them: by dlopen of the SONAME, then the first form of
// cuGetProcAddress, or where a driver before 11.3 has none, by their exported names.

#include "fake/runtime/driver.h"

#include <dlfcn.h>
#include <cstring>

namespace cuslice::fake {
namespace {

constexpr int kOwnVersion = 11080;
constinit std::atomic<void*> driver{nullptr};
constinit std::atomic<PFN_cuGetProcAddress_v11030> get_proc_address{nullptr};

struct Form {
    const char* symbol;
    const char* name;
    int version;
    bool per_thread;
};
constexpr bool legacy = false, per_thread = true;
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) {#symbol, #name, version, stream},
constexpr Form kForms[] = {
#include "virtual_gpu/driver/functions.def"
};

/// The newest form that the driver exports and that is no newer than `version`.
void* newest_form(const char* name, int version, bool of_threads) {
    void* newest = nullptr;
    int its_version = 0;
    for (const Form& form : kForms) {
        if (form.per_thread != of_threads || form.version > version || form.version <= its_version ||
            std::strcmp(form.name, name) != 0)
            continue;
        if (void* const exported = dlsym(driver.load(std::memory_order_acquire), form.symbol)) {
            newest = exported;
            its_version = form.version;
        }
    }
    return newest;
}

}  // namespace

bool open_driver() {
    // Never closed: the driver outlives every function of the runtime, those that run at exit too.
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr)
        return false;
    const auto function = reinterpret_cast<PFN_cuGetProcAddress_v11030>(dlsym(library, "cuGetProcAddress"));
    get_proc_address.store(function, std::memory_order_relaxed);
    driver.store(library, std::memory_order_release);
    void* itself = nullptr;
    if (function != nullptr)
        function("cuGetProcAddress", &itself, kOwnVersion, CU_GET_PROC_ADDRESS_DEFAULT);
    return true;
}

bool driver_is_open() { return driver.load(std::memory_order_acquire) != nullptr; }

CUresult ask_driver(const char* name, void** function, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult* status) {
    if (!driver_is_open())
        return CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = CUDA_SUCCESS;
    if (const auto ask = get_proc_address.load(std::memory_order_relaxed)) {
        result = ask(name, function, version, flags);
    } else {
        void* found = newest_form(name, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
        if (found == nullptr)
            found = newest_form(name, version, false);
        result = found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
        if (found != nullptr)
            *function = found;
    }
    if (status != nullptr)
        *status = result == CUDA_SUCCESS ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return result;
}

}  // namespace cuslice::fake
