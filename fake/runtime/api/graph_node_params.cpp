// SPDX-License-Identifier: Apache-2.0
// Parameters of a graph's nodes: read, and changed.

#include "fake/runtime/copy_box.h"
#include "fake/runtime/forward.h"
#include "fake/runtime/graph_nodes.h"

using namespace cuslice::fake;

CUSLICE_FORWARD(cudaGraphHostNodeGetParams, cuGraphHostNodeGetParams, 10000, node, parameters)
CUSLICE_FORWARD(cudaGraphHostNodeSetParams, cuGraphHostNodeSetParams, 10000, node, parameters)
CUSLICE_FORWARD(cudaGraphEventRecordNodeGetEvent, cuGraphEventRecordNodeGetEvent, 11010, node, event)
CUSLICE_FORWARD(cudaGraphEventRecordNodeSetEvent, cuGraphEventRecordNodeSetEvent, 11010, node, event)
CUSLICE_FORWARD(cudaGraphEventWaitNodeGetEvent, cuGraphEventWaitNodeGetEvent, 11010, node, event)
CUSLICE_FORWARD(cudaGraphEventWaitNodeSetEvent, cuGraphEventWaitNodeSetEvent, 11010, node, event)

namespace {

/// The kind of a copy between memory of these types; an array is the device's.
cudaMemcpyKind kind_of(CUmemorytype from, CUmemorytype to) {
    if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED)
        return cudaMemcpyDefault;
    if (from == CU_MEMORYTYPE_HOST)
        return to == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    return to == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

/// Bytes that positions and widths at an end count in: an array's elements.
cudaError_t unit_of(CUmemorytype type, CUarray array, size_t* unit) {
    *unit = 1;
    return type == CU_MEMORYTYPE_ARRAY ? element_bytes(reinterpret_cast<cudaArray_t>(array), unit) : cudaSuccess;
}

/// Reverses describe_box().
cudaError_t tell(cudaMemcpy3DParms& out, const CUDA_MEMCPY3D& copy) {
    size_t from_unit = 1, to_unit = 1;
    CUSLICE_TRY(unit_of(copy.srcMemoryType, copy.srcArray, &from_unit));
    CUSLICE_TRY(unit_of(copy.dstMemoryType, copy.dstArray, &to_unit));
    const bool from_array = copy.srcMemoryType == CU_MEMORYTYPE_ARRAY,
               to_array = copy.dstMemoryType == CU_MEMORYTYPE_ARRAY;
    const bool from_host = copy.srcMemoryType == CU_MEMORYTYPE_HOST, to_host = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
    out = {};
    out.kind = kind_of(copy.srcMemoryType, copy.dstMemoryType);
    out.srcPos = {copy.srcXInBytes / from_unit, copy.srcY, copy.srcZ};
    out.dstPos = {copy.dstXInBytes / to_unit, copy.dstY, copy.dstZ};
    if (from_array) {
        out.srcArray = reinterpret_cast<cudaArray_t>(copy.srcArray);
    } else {
        void* const from = from_host ? const_cast<void*>(copy.srcHost) : reinterpret_cast<void*>(copy.srcDevice);
        out.srcPtr = {from, copy.srcPitch, copy.WidthInBytes, copy.srcHeight};
    }
    if (to_array) {
        out.dstArray = reinterpret_cast<cudaArray_t>(copy.dstArray);
    } else {
        void* const to = to_host ? copy.dstHost : reinterpret_cast<void*>(copy.dstDevice);
        out.dstPtr = {to, copy.dstPitch, copy.WidthInBytes, copy.dstHeight};
    }
    out.extent = {copy.WidthInBytes / (from_array ? from_unit : to_unit), copy.Height, copy.Depth};
    return cudaSuccess;
}

}  // namespace

// Never of a kernel that the program registered: the driver isn't told its parameters and refuses to read arguments.
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* parameters) {
    if (parameters == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        CUDA_KERNEL_NODE_PARAMS launch{};
        CUSLICE_TRY(as_error(CU(cuGraphKernelNodeGetParams, 12000)(node, &launch)));
        void* const handle = launch.func != nullptr ? static_cast<void*>(launch.func) : static_cast<void*>(launch.kern);
        *parameters = {handle,
                       {launch.gridDimX, launch.gridDimY, launch.gridDimZ},
                       {launch.blockDimX, launch.blockDimY, launch.blockDimZ},
                       launch.sharedMemBytes,
                       launch.kernelParams,
                       launch.extra};
        return cudaSuccess;
    });
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters) {
    return with_launch(parameters, [&](const CUDA_KERNEL_NODE_PARAMS& launch, CUcontext) {
        return CU(cuGraphKernelNodeSetParams, 12000)(node, &launch);
    });
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* parameters) {
    if (parameters == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        CUDA_MEMCPY3D copy{};
        CUSLICE_TRY(as_error(CU(cuGraphMemcpyNodeGetParams, 10000)(node, &copy)));
        return tell(*parameters, copy);
    });
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* parameters) {
    return with_copy(parameters, [&](const CUDA_MEMCPY3D& copy, CUcontext) {
        return CU(cuGraphMemcpyNodeSetParams, 10000)(node, &copy);
    });
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* destination, const void* source, size_t bytes,
                                           cudaMemcpyKind kind) {
    const cudaMemcpy3DParms copy = linear_copy(destination, source, bytes, kind);
    return cudaGraphMemcpyNodeSetParams(node, &copy);
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* parameters) {
    if (parameters == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        CUDA_MEMSET_NODE_PARAMS fill{};
        CUSLICE_TRY(as_error(CU(cuGraphMemsetNodeGetParams, 10000)(node, &fill)));
        *parameters = {
            reinterpret_cast<void*>(fill.dst), fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
        return cudaSuccess;
    });
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* parameters) {
    return with_fill(parameters, [&](const CUDA_MEMSET_NODE_PARAMS& fill, CUcontext) {
        return CU(cuGraphMemsetNodeSetParams, 10000)(node, &fill);
    });
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* parameters) {
    return with_described(
        parameters, [&](CUgraphNodeParams& described) { return CU(cuGraphNodeSetParams, 12020)(node, &described); });
}
