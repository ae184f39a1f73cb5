// SPDX-License-Identifier: Apache-2.0
// A libcudart.so.11.0 from before 11.3: it takes the driver's exported functions, and has no cudaGetDriverEntryPoint.
#include <dlfcn.h>

namespace {

template <typename Function>
Function* of_driver(const char* name) {
    return reinterpret_cast<Function*>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int cudaGetDeviceCount(int* count) {
    const int result = of_driver<int(unsigned)>("cuInit")(0);
    return result ? result : of_driver<int(int*)>("cuDeviceGetCount")(count);
}
extern "C" __attribute__((visibility("default"))) int cudaGetDevice(int* device) {
    *device = 0;
    return 0;
}
