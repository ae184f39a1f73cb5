// Copies of boxes. Built twice: legacy and per-thread default stream (_ptsz, _ptds).

#include "virtual_gpu/fake/runtime/array_format.h"
#include "virtual_gpu/fake/runtime/copy.h"

using namespace cuslice::fake;

namespace {

/// Fills what CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER have in common. With an array at either end widths and positions
/// count its elements, else bytes (cuda_runtime_api.h, cudaMemcpy3D). The context is current.
template <class Copy, class Parameters>
cudaError_t describe(Copy& copy, const Parameters& parameters, cudaMemcpyKind kind) {
    const bool from_pointer = parameters.srcArray == nullptr;
    const bool to_pointer = parameters.dstArray == nullptr;
    if ((parameters.srcPtr.ptr == nullptr) == from_pointer || (parameters.dstPtr.ptr == nullptr) == to_pointer) {
        return cudaErrorInvalidValue;  // exactly one of array and pointer at each end
    }
    size_t source_unit = 1;
    size_t destination_unit = 1;
    cudaError_t error = cudaSuccess;
    if (!from_pointer) {
        error = element_bytes(parameters.srcArray, &source_unit);
    }
    if (error == cudaSuccess && !to_pointer) {
        error = element_bytes(parameters.dstArray, &destination_unit);
    }
    if (error != cudaSuccess) {
        return error;
    }
    copy.srcMemoryType = from_pointer ? source_type(kind) : CU_MEMORYTYPE_ARRAY;
    copy.srcHost = parameters.srcPtr.ptr;
    copy.srcDevice = address(parameters.srcPtr.ptr);
    copy.srcArray = reinterpret_cast<CUarray>(parameters.srcArray);
    copy.srcPitch = parameters.srcPtr.pitch;
    copy.srcHeight = parameters.srcPtr.ysize;
    copy.srcXInBytes = parameters.srcPos.x * source_unit;
    copy.srcY = parameters.srcPos.y;
    copy.srcZ = parameters.srcPos.z;
    copy.dstMemoryType = to_pointer ? destination_type(kind) : CU_MEMORYTYPE_ARRAY;
    copy.dstHost = parameters.dstPtr.ptr;
    copy.dstDevice = address(parameters.dstPtr.ptr);
    copy.dstArray = reinterpret_cast<CUarray>(parameters.dstArray);
    copy.dstPitch = parameters.dstPtr.pitch;
    copy.dstHeight = parameters.dstPtr.ysize;
    copy.dstXInBytes = parameters.dstPos.x * destination_unit;
    copy.dstY = parameters.dstPos.y;
    copy.dstZ = parameters.dstPos.z;
    copy.WidthInBytes = parameters.extent.width * (from_pointer ? destination_unit : source_unit);
    copy.Height = parameters.extent.height;
    copy.Depth = parameters.extent.depth;
    return cudaSuccess;
}

bool is_empty(const cudaExtent& extent) { return extent.width == 0 || extent.height == 0 || extent.depth == 0; }

template <class Run>
cudaError_t copy_box(const cudaMemcpy3DParms* parameters, Run run) {
    if (parameters == nullptr || !is_direction(parameters->kind)) {
        return record(parameters == nullptr ? cudaErrorInvalidValue : cudaErrorInvalidMemcpyDirection);
    }
    return in_context([&] {
        CUDA_MEMCPY3D copy{};
        const cudaError_t error = describe(copy, *parameters, parameters->kind);
        return error != cudaSuccess || is_empty(parameters->extent) ? error : as_error(run(&copy));
    });
}

template <class Run>
cudaError_t copy_box_between(const cudaMemcpy3DPeerParms* parameters, Run run) {
    if (parameters == nullptr) {
        return record(cudaErrorInvalidValue);
    }
    return in_context([&] {
        CUDA_MEMCPY3D_PEER copy{};
        cudaError_t error = describe(copy, *parameters, cudaMemcpyDeviceToDevice);
        if (error == cudaSuccess) {
            error = primary_context(parameters->srcDevice, &copy.srcContext);
        }
        if (error == cudaSuccess) {
            error = primary_context(parameters->dstDevice, &copy.dstContext);
        }
        return error != cudaSuccess || is_empty(parameters->extent) ? error : as_error(run(&copy));
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
