// SPDX-License-Identifier: Apache-2.0
// A driver that writes every look-up into the file CUSLICE_TEST_SPY, one "name version flags" a line, and passes it on
// to the driver CUSLICE_TEST_DRIVER.

#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

CUresult version_of_the_test(int* version) {
    *version = std::atoi(std::getenv("CUSLICE_TEST_DRIVER_VERSION"));
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(const char* symbol, void** function,
                                                                               int version, cuuint64_t flags,
                                                                               CUdriverProcAddressQueryResult* status) {
    static FILE* const log = std::fopen(std::getenv("CUSLICE_TEST_SPY"), "w");
    static void* const driver = dlopen(std::getenv("CUSLICE_TEST_DRIVER"), RTLD_NOW);
    static const auto real = reinterpret_cast<PFN_cuGetProcAddress_v12000>(
        driver == nullptr ? nullptr : dlsym(driver, "cuGetProcAddress_v2"));
    if (log != nullptr) {
        std::fprintf(log, "%s %d %llu\n", *symbol == '\0' ? "(empty)" : symbol, version,
                     static_cast<unsigned long long>(flags));
        std::fflush(log);
    }
    if (std::strcmp(symbol, "cuDriverGetVersion") == 0 && std::getenv("CUSLICE_TEST_DRIVER_VERSION") != nullptr) {
        *function = reinterpret_cast<void*>(version_of_the_test);
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
        return CUDA_SUCCESS;
    }
    return real == nullptr ? CUDA_ERROR_NOT_INITIALIZED : real(symbol, function, version, flags, status);
}

#undef cuGetProcAddress
extern "C" __attribute__((visibility("default"))) CUresult cuGetProcAddress(const char* symbol, void** function,
                                                                            int version, cuuint64_t flags) {
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result = cuGetProcAddress_v2(symbol, function, version, flags, &status);
    return result == CUDA_SUCCESS && status != CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_ERROR_NOT_FOUND : result;
}
