// Device code that the program loads by itself: the driver's libraries, handed through.

#include "fake/runtime/state.h"

using namespace cuslice::fake;

namespace {

/// The driver's options have the runtime's numbers (driver_types.h: cudaJitOption, cudaLibraryOption).
CUjit_option* jit_options(cudaJitOption* options) { return reinterpret_cast<CUjit_option*>(options); }
CUlibraryOption* library_options(cudaLibraryOption* options) { return reinterpret_cast<CUlibraryOption*>(options); }

}  // namespace

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jit, void** jit_values,
                                unsigned int jit_count, cudaLibraryOption* options, void** values, unsigned int count) {
    return in_context(CU(cuLibraryLoadData, 12000), library, code, jit_options(jit), jit_values, jit_count,
                      library_options(options), values, count);
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption* jit, void** jit_values,
                                    unsigned int jit_count, cudaLibraryOption* options, void** values,
                                    unsigned int count) {
    return in_context(CU(cuLibraryLoadFromFile, 12000), library, path, jit_options(jit), jit_values, jit_count,
                      library_options(options), values, count);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) { return in_context(CU(cuLibraryUnload, 12000), library); }

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
    return in_context(CU(cuLibraryGetKernel, 12000), kernel, library, name);
}

cudaError_t cudaLibraryGetGlobal(void** pointer, size_t* bytes, cudaLibrary_t library, const char* name) {
    return in_context(CU(cuLibraryGetGlobal, 12000), reinterpret_cast<CUdeviceptr*>(pointer), bytes, library, name);
}

cudaError_t cudaLibraryGetManaged(void** pointer, size_t* bytes, cudaLibrary_t library, const char* name) {
    return in_context(CU(cuLibraryGetManaged, 12000), reinterpret_cast<CUdeviceptr*>(pointer), bytes, library, name);
}

cudaError_t cudaLibraryGetKernelCount(unsigned int* count, cudaLibrary_t library) {
    return in_context(CU(cuLibraryGetKernelCount, 12040), count, library);
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned int count, cudaLibrary_t library) {
    return in_context(CU(cuLibraryEnumerateKernels, 12040), kernels, count, library);
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
    return on_device(device, [&](CUdevice handle) {
        return CU(cuKernelSetAttribute, 12000)(static_cast<CUfunction_attribute>(attribute), value, kernel, handle);
    });
}
