// SPDX-License-Identifier: Apache-2.0
// Functions that nvcc's host code calls before main and around <<<>>>. Their declarations are those of
// crt/host_runtime.h and crt/device_functions.h, which only nvcc's own compilation includes.

#include "fake/runtime/modules.h"
#include "fake/runtime/report.h"
#include "fake/runtime/state.h"

#include <cstdlib>

using namespace cuslice::fake;

namespace {

struct Configuration {
    Configuration* outer;  ///< arguments of a launch may launch, too
    dim3 grid;
    dim3 block;
    size_t shared_bytes;
    void* stream;
};

thread_local constinit Configuration* configurations = nullptr;

Binary* binary_of(void** handle) { return reinterpret_cast<Binary*>(handle); }

void log_no_memory(const char* name) { log_line("fake CUDA runtime: no host memory to register %s", name); }

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* device_code) {
    Lock held;
    Binary* const binary = add_binary(device_code);
    if (binary == nullptr)
        log_no_memory("device code");
    return reinterpret_cast<void**>(binary);
}

// Nothing is loaded before its first use, so the end of a registration means nothing here.
void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
    Lock held;
    if (handle != nullptr) {
        unload_binary(binary_of(handle));
        remove_binary(binary_of(handle));
    }
}

void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
    Lock held;
    if (handle == nullptr || !add_kernel(binary_of(handle), host, name))
        log_no_memory(name);
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t size, int, int) {
    Lock held;
    if (handle == nullptr || !add_variable(binary_of(handle), host, name, size, nullptr))
        log_no_memory(name);
}

void __cudaRegisterManagedVar(void** handle, void** shadow, char*, const char* name, int, size_t size, int, int) {
    Lock held;
    if (handle == nullptr || !add_variable(binary_of(handle), shadow, name, size, shadow))
        log_no_memory(name);
}

// Texture and surface references, which 11 still has: whoever uses one is refused by name.
void __cudaRegisterTexture(void**, const void*, const void**, const char*, int, int, int) {}
void __cudaRegisterSurface(void**, const void*, const void**, const char*, int, int) {}

char __cudaInitModule(void** handle) {
    return handle != nullptr && in_context([&] { return make_managed(binary_of(handle)); }) == cudaSuccess ? 1 : 0;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void* stream) {
    auto* const made = static_cast<Configuration*>(std::malloc(sizeof(Configuration)));
    if (made == nullptr)
        return record(cudaErrorMemoryAllocation);
    *made = {configurations, grid, block, shared_bytes, stream};
    configurations = made;
    return cudaSuccess;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
    Configuration* const top = configurations;
    if (top == nullptr)
        return record(cudaErrorMissingConfiguration);
    *grid = top->grid;
    *block = top->block;
    *shared_bytes = top->shared_bytes;
    *static_cast<void**>(stream) = top->stream;
    configurations = top->outer;
    std::free(top);
    return cudaSuccess;
}

// A kernel's handle is its host address: it names the kernel in every context, as a cudaKernel_t must. The driver API
// doesn't know it.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
    Lock held;
    if (kernel == nullptr)
        return record(cudaErrorInvalidValue);
    if (find_kernel(host) == nullptr)
        return record(cudaErrorInvalidDeviceFunction);
    *kernel = static_cast<cudaKernel_t>(const_cast<void*>(host));
    return cudaSuccess;
}

}  // extern "C"

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host) { return __cudaGetKernel(kernel, host); }
