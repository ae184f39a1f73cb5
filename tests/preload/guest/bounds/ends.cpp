// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/guest/bounds/ends.h"

#include <algorithm>
#include <cstdio>

namespace bounds {

void must(CUresult result, const char* what) {
    if (result == CUDA_SUCCESS)
        return;
    std::fprintf(stderr, "%s: %d\n", what, result);
    std::_Exit(3);
}

namespace {

constexpr size_t kArrayRow = 4096;

}  // namespace

void make_ends(size_t bytes) {
    bytes = (bytes / kArrayRow + 1) * kArrayRow;
    ends.host.resize(bytes);
    BOUNDS_MUST(cuMemAlloc_v2(&ends.device, bytes));
    CUDA_ARRAY_DESCRIPTOR shape{};
    shape.Width = kArrayRow;
    shape.Height = bytes / kArrayRow;
    shape.Format = CU_AD_FORMAT_UNSIGNED_INT8;
    shape.NumChannels = 1;
    BOUNDS_MUST(cuArrayCreate_v2(&ends.array, &shape));
    BOUNDS_MUST(cuCtxGetCurrent(&ends.context));
}

void fill_ends(const Bytes& bytes) {
    std::copy(bytes.begin(), bytes.end(), ends.host.begin());
    BOUNDS_MUST(cuMemcpyHtoD_v2(ends.device, bytes.data(), bytes.size()));
    BOUNDS_MUST(cuMemcpyHtoA_v2(ends.array, 0, bytes.data(), bytes.size()));
}

namespace {

// Sets the fields that copies of rows and of boxes share: one side is the device memory that is tried, the other is
// the end.
template <typename Copy>
void set_ends(Copy& copy, Way way, CUdeviceptr at, size_t bytes, CUmemorytype type) {
    copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    (way == Way::from ? copy.srcMemoryType : copy.dstMemoryType) = type;
    copy.srcDevice = way == Way::from ? at : ends.device;
    copy.dstDevice = way == Way::from ? ends.device : at;
    copy.srcPitch = copy.dstPitch = pitch(bytes);
    copy.WidthInBytes = width(bytes);
}

}  // namespace

const CUDA_MEMCPY2D* rows(Way way, CUdeviceptr at, size_t bytes, CUmemorytype type) {
    static thread_local CUDA_MEMCPY2D copy;
    set_ends(copy, way, at, bytes, type);
    copy.Height = 4;
    return &copy;
}

namespace {

template <typename Copy>
Copy box_of(Way way, CUdeviceptr at, size_t bytes, CUmemorytype type, Shape shape) {
    Copy copy;
    set_ends(copy, way, at, bytes, type);
    copy.Height = shape == Shape::layers ? 1 : shape == Shape::box ? 2 : 4;
    copy.Depth = 4 / copy.Height;
    copy.srcHeight = copy.dstHeight = copy.Height;
    if (shape != Shape::offset)
        return copy;
    // Row 1 of layer 2, of layers of 5 rows.
    const size_t before = (2 * 5 + 1) * pitch(bytes);
    (way == Way::from ? copy.srcDevice : copy.dstDevice) -= before;
    (way == Way::from ? copy.srcHeight : copy.dstHeight) = 5;
    (way == Way::from ? copy.srcY : copy.dstY) = 1;
    (way == Way::from ? copy.srcZ : copy.dstZ) = 2;
    return copy;
}

CUmemcpy3DOperand operand(CUdeviceptr at, size_t bytes) {
    CUmemcpy3DOperand operand{};
    operand.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    operand.op.ptr.ptr = at;
    operand.op.ptr.rowLength = pitch(bytes);
    operand.op.ptr.layerHeight = 2;
    return operand;
}

}  // namespace

const CUDA_MEMCPY3D* box(Way way, CUdeviceptr at, size_t bytes, CUmemorytype type, Shape shape) {
    static thread_local CUDA_MEMCPY3D copy;
    copy = box_of<CUDA_MEMCPY3D>(way, at, bytes, type, shape);
    return &copy;
}

const CUDA_MEMCPY3D_PEER* peer_box(Way way, CUdeviceptr at, size_t bytes) {
    static thread_local CUDA_MEMCPY3D_PEER copy;
    copy = box_of<CUDA_MEMCPY3D_PEER>(way, at, bytes, CU_MEMORYTYPE_DEVICE, Shape::box);
    copy.srcContext = copy.dstContext = ends.context;
    return &copy;
}

CUDA_MEMCPY3D_BATCH_OP* box_batch(Way way, CUdeviceptr at, size_t bytes) {
    static thread_local CUDA_MEMCPY3D_BATCH_OP copies[2];
    for (CUDA_MEMCPY3D_BATCH_OP& copy : copies) {
        copy = {};
        copy.src = copy.dst = operand(ends.device, bytes);
        copy.extent = {width(bytes), 2, 2};
    }
    (way == Way::from ? copies[1].src : copies[1].dst).op.ptr.ptr = at;
    return copies;
}

const CUDA_MEMSET_NODE_PARAMS* fill(CUdeviceptr at, size_t bytes, unsigned element) {
    static thread_local CUDA_MEMSET_NODE_PARAMS params;
    const size_t units = bytes / element;
    const unsigned value = element == 1 ? 0x5a : element == 2 ? 0x5a5a : 0x5a5a5a5a;  // kFilled in each byte
    params = {at, pitch(units) * element, value, element, width(units), 4};
    return &params;
}

CUgraphNodeParams* copy_node(Way way, CUdeviceptr at, size_t bytes) {
    static thread_local CUgraphNodeParams node;
    node = {};
    node.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    node.memcpy.copyCtx = ends.context;
    node.memcpy.copyParams = *box(way, at, bytes, CU_MEMORYTYPE_DEVICE, Shape::box);
    return &node;
}

CUgraphNodeParams* fill_node(CUdeviceptr at, size_t bytes, unsigned element) {
    static thread_local CUgraphNodeParams node;
    const CUDA_MEMSET_NODE_PARAMS params = *fill(at, bytes, element);
    node = {};
    node.type = CU_GRAPH_NODE_TYPE_MEMSET;
    node.memset = {params.dst, params.pitch, params.value, element, params.width, params.height, ends.context};
    return &node;
}

}  // namespace bounds
