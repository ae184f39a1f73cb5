// SPDX-License-Identifier: Apache-2.0
// Copies between two devices. These have no per-thread forms in the runtime.

#include "fake/runtime/state.h"

using namespace cuslice::fake;

namespace {

/// Hands the primary contexts of two devices to `copy`.
template <class Copy>
cudaError_t between(int destination, int source, size_t count, Copy copy) {
    return in_context([&] {
        CUcontext to = nullptr;
        CUcontext from = nullptr;
        CUSLICE_TRY(primary_context(destination, &to));
        CUSLICE_TRY(primary_context(source, &from));
        return count == 0 ? cudaSuccess : as_error(copy(to, from));
    });
}

}  // namespace

cudaError_t cudaMemcpyPeer(void* destination, int destination_device, const void* source, int source_device,
                           size_t count) {
    return between(destination_device, source_device, count, [&](CUcontext to, CUcontext from) {
        return CU(cuMemcpyPeer, 4000)(address(destination), to, address(source), from, count);
    });
}

cudaError_t cudaMemcpyPeerAsync(void* destination, int destination_device, const void* source, int source_device,
                                size_t count, cudaStream_t stream) {
    return between(destination_device, source_device, count, [&](CUcontext to, CUcontext from) {
        return CU(cuMemcpyPeerAsync, 4000)(address(destination), to, address(source), from, count, stream);
    });
}
