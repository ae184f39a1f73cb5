// SPDX-License-Identifier: Apache-2.0
// A library with stand-ins of its own for the runtime's names, as TensorFlow's: each opens the runtime that the library
// is for, by its SONAME. It calls them by names without a version, which whatever was loaded earlier may answer.
#include <dlfcn.h>

#include <cstdlib>

extern "C" {
__attribute__((visibility("default"))) int cudaGetDeviceProperties(void* properties, int device) {
    void* const runtime = dlopen(std::getenv("CUDART"), RTLD_NOW);
    auto* const real = reinterpret_cast<int (*)(void*, int)>(dlsym(runtime, "cudaGetDeviceProperties"));
    return real(properties, device);
}
__attribute__((visibility("default"))) int guest_properties(void* properties) {
    return cudaGetDeviceProperties(properties, 0);
}
}
