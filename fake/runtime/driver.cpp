// SPDX-License-Identifier: Apache-2.0
#include "fake/runtime/driver.h"

#include "fake/runtime/report.h"

#include <cstdlib>
#include <cstring>

namespace cuslice::fake {
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
