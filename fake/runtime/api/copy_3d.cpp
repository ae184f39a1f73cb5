// SPDX-License-Identifier: Apache-2.0
// Copies of boxes. Built twice: legacy and per-thread default stream (_ptsz, _ptds).

#include "fake/runtime/copy_box.h"

using namespace cuslice::fake;

namespace {

bool is_empty(const cudaExtent& extent) { return extent.width == 0 || extent.height == 0 || extent.depth == 0; }

template <class Run>
cudaError_t copy_box(const cudaMemcpy3DParms* parameters, Run run) {
    if (parameters == nullptr || !is_direction(parameters->kind)) {
        return record(parameters == nullptr ? cudaErrorInvalidValue : cudaErrorInvalidMemcpyDirection);
    }
    return in_context([&] {
        CUDA_MEMCPY3D copy{};
        CUSLICE_TRY(describe_box(copy, *parameters, parameters->kind));
        return is_empty(parameters->extent) ? cudaSuccess : as_error(run(&copy));
    });
}

template <class Run>
cudaError_t copy_box_between(const cudaMemcpy3DPeerParms* parameters, Run run) {
    if (parameters == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        CUDA_MEMCPY3D_PEER copy{};
        CUSLICE_TRY(describe_box(copy, *parameters, cudaMemcpyDeviceToDevice));
        CUSLICE_TRY(primary_context(parameters->srcDevice, &copy.srcContext));
        CUSLICE_TRY(primary_context(parameters->dstDevice, &copy.dstContext));
        return is_empty(parameters->extent) ? cudaSuccess : as_error(run(&copy));
    });
}

}  // namespace

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) {
    return copy_box(parameters, [](const CUDA_MEMCPY3D* copy) { return CU_STREAM(cuMemcpy3D, 3020)(copy); });
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
    return copy_box(parameters,
                    [&](const CUDA_MEMCPY3D* copy) { return CU_STREAM(cuMemcpy3DAsync, 3020)(copy, stream); });
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* parameters) {
    return copy_box_between(parameters,
                            [](const CUDA_MEMCPY3D_PEER* copy) { return CU_STREAM(cuMemcpy3DPeer, 4000)(copy); });
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* parameters, cudaStream_t stream) {
    return copy_box_between(
        parameters, [&](const CUDA_MEMCPY3D_PEER* copy) { return CU_STREAM(cuMemcpy3DPeerAsync, 4000)(copy, stream); });
}
