// SPDX-License-Identifier: Apache-2.0
// Device code that the program loads by itself: the driver's libraries, handed through.

#include "fake/runtime/forward.h"

using namespace cuslice::fake;

CUSLICE_FORWARD(cudaLibraryLoadData, cuLibraryLoadData, 12000, library, code, jit, jit_values, jit_count, options,
                values, count)
CUSLICE_FORWARD(cudaLibraryLoadFromFile, cuLibraryLoadFromFile, 12000, library, path, jit, jit_values, jit_count,
                options, values, count)
CUSLICE_FORWARD(cudaLibraryUnload, cuLibraryUnload, 12000, library)
CUSLICE_FORWARD(cudaLibraryGetKernel, cuLibraryGetKernel, 12000, kernel, library, name)
CUSLICE_FORWARD(cudaLibraryGetGlobal, cuLibraryGetGlobal, 12000, pointer, bytes, library, name)
CUSLICE_FORWARD(cudaLibraryGetManaged, cuLibraryGetManaged, 12000, pointer, bytes, library, name)
CUSLICE_FORWARD(cudaLibraryGetKernelCount, cuLibraryGetKernelCount, 12040, count, library)
CUSLICE_FORWARD(cudaLibraryEnumerateKernels, cuLibraryEnumerateKernels, 12040, kernels, count, library)

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
    return on_device(device, [&](CUdevice handle) {
        return CU(cuKernelSetAttribute, 12000)(static_cast<CUfunction_attribute>(attribute), value, kernel, handle);
    });
}
