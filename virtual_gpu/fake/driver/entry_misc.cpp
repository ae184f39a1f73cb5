// What has a fixed answer.

#include <atomic>

#include "virtual_gpu/fake/driver/gate.h"
#include "virtual_gpu/fake/driver/unsupported.h"

using namespace cuslice::fake;

namespace cuslice::fake {

int say_unsupported(const char* name, std::atomic<bool>& said) { return unsupported(name, said); }

}  // namespace cuslice::fake

// NVIDIA's runtime asks here for tables by which the driver proves itself. There is no proof to give.
CUresult CUDAAPI cuGetExportTable(const void** table, const CUuuid* id) {
    static std::atomic<bool> said{false};
    if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!said.exchange(true)) {
        say("a program that carries NVIDIA's own (static) CUDA runtime can't start on the fake GPU; link the shared "
            "runtime "
            "instead: nvcc -cudart shared, or CUDA_RUNTIME_LIBRARY Shared in CMake");
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult CUDAAPI cuProfilerStart() {
    CUSLICE_ENTER(cuProfilerStart)
    return CUDA_SUCCESS;  // documented to succeed when no profiler is attached
}

CUresult CUDAAPI cuProfilerStop() {
    CUSLICE_ENTER(cuProfilerStop)
    return CUDA_SUCCESS;
}
