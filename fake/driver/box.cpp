// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/box.h"

#include <memory>
#include <utility>
#include <vector>

#include "fake/driver/api_prologue.h"
#include "fake/driver/array.h"
#include "fake/driver/work_fault.h"

namespace cuslice::fake {
namespace {

using Rows = std::vector<std::pair<Extents, Extents>>;  // to, from

void touch(const Array& array) {
    const std::lock_guard hold(array.gpu->lock);
    const Block block = array.gpu->device.heap.at(array.block);
    if (block)
        block.record->touched = true;
}

/// One row of one end.
CUresult resolve_row(const BoxEnd& end, size_t y, size_t z, size_t width, Access access, Extents& extents) {
    if (end.type == CU_MEMORYTYPE_ARRAY) {
        CUSLICE_FIND_IN(array, arrays, end.array);
        if (array->sparse)
            CUSLICE_UNSUPPORTED("the contents of sparse arrays");
        const bool inside = end.x <= array->row && width <= array->row - end.x && y < array->rows && z < array->layers;
        if (!inside || end.x % array->element != 0 || width % array->element != 0)
            return CUDA_ERROR_INVALID_VALUE;
        const Address at = array->at + (z * array->rows + y) * array->row + end.x;
        extents.push_back({&array->gpu->device.space, at, width, array->gpu, nullptr});
        return CUDA_SUCCESS;
    }
    const Address at = end.address + (z * end.height + y) * end.pitch + end.x;
    switch (end.type) {
        case CU_MEMORYTYPE_HOST:
            return resolve_end({Side::Host, at, end.gpu}, width, access, extents);
        case CU_MEMORYTYPE_DEVICE:
            return resolve_end({Side::Device, at, end.gpu}, width, access, extents);
        case CU_MEMORYTYPE_UNIFIED:
            return resolve_end({Side::Any, at, end.gpu}, width, access, extents);
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
}

/// A pitch of 0 means rows that touch each other; a height of 0 layers that do. The sizes must not wrap around.
CUresult complete(BoxEnd& end, const Box& box) {
    if (end.type == CU_MEMORYTYPE_ARRAY)
        return CUDA_SUCCESS;
    if (end.pitch == 0)
        end.pitch = end.x + box.width;
    if (end.height == 0)
        end.height = end.y + box.height;
    const bool rows = box.height > 1 || box.depth > 1;
    if (rows && (end.pitch < box.width || end.x > end.pitch - box.width))
        return CUDA_ERROR_INVALID_VALUE;
    if (box.depth > 1 && (end.height < box.height || end.y > end.height - box.height))
        return CUDA_ERROR_INVALID_VALUE;
    size_t layer = 0, last = 0;
    const bool wraps = __builtin_mul_overflow(end.pitch, end.height, &layer) ||
                       __builtin_mul_overflow(layer, end.z + box.depth, &last) || end.address + last < end.address;
    return wraps ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

CUresult check_box(const Box& asked, CUcontext context, CheckedBox& out) {
    Box box = asked;
    CUSLICE_TRY(complete(box.from, box));
    CUSLICE_TRY(complete(box.to, box));
    auto rows = std::make_shared<Rows>();
    for (size_t z = 0; z < box.depth; z++) {
        for (size_t y = 0; y < box.height; y++) {
            auto& [to, from] = rows->emplace_back();
            CUSLICE_TRY(resolve_row(box.from, box.from.y + y, box.from.z + z, box.width, Access::Read, from));
            CUSLICE_TRY(resolve_row(box.to, box.to.y + y, box.to.z + z, box.width, Access::Write, to));
        }
    }
    if (box.to.type == CU_MEMORYTYPE_ARRAY)
        touch(*arrays.find(box.to.array));
    out.to = rows->front().first;
    out.from = rows->front().second;
    out.task = [rows, context] {
        for (const auto& [to, from] : *rows) {
            if (const CUresult bad = copy_extents(to, from); bad != CUDA_SUCCESS)
                return work_failed(context, bad);
        }
    };
    return CUDA_SUCCESS;
}

static CUgraphNodeParams describe_box(const Box& box) {
    const auto& [from, to, width, height, depth] = box;
    const bool from_host = from.type == CU_MEMORYTYPE_HOST, to_host = to.type == CU_MEMORYTYPE_HOST;
    CUDA_MEMCPY3D copy{};
    copy.srcXInBytes = from.x, copy.srcY = from.y, copy.srcZ = from.z;
    copy.srcMemoryType = from.type;
    copy.srcHost = from_host ? reinterpret_cast<const void*>(from.address) : nullptr;
    copy.srcDevice = from_host ? 0 : from.address;
    copy.srcArray = from.array;
    copy.srcPitch = from.pitch, copy.srcHeight = from.height;
    copy.dstXInBytes = to.x, copy.dstY = to.y, copy.dstZ = to.z;
    copy.dstMemoryType = to.type;
    copy.dstHost = to_host ? reinterpret_cast<void*>(to.address) : nullptr;
    copy.dstDevice = to_host ? 0 : to.address;
    copy.dstArray = to.array;
    copy.dstPitch = to.pitch, copy.dstHeight = to.height;
    copy.WidthInBytes = width, copy.Height = height, copy.Depth = depth;
    return node_params(copy, current_handle);
}

CUresult copy_box(const Box& box, const Order& order) {
    CUSLICE_FIND_CURRENT(context);
    if (box.empty())
        return CUDA_SUCCESS;
    CheckedBox checked;
    CUSLICE_TRY(check_box(box, current_handle, checked));
    return run_transfer(copy_work(std::move(checked.task), checked.to, checked.from, box.height * box.depth),
                        {order.stream, order.form, returns_when_done(order, checked.to, checked.from)},
                        [&] { return describe_box(box); });
}

CUresult resolve_array_bytes(CUarray handle, size_t offset, size_t size, Access access, Extents& extents) {
    CUSLICE_FIND_IN(array, arrays, handle);
    if (array->sparse)
        CUSLICE_UNSUPPORTED("the contents of sparse arrays");
    if (array->layers > 1 || offset > array->bytes() || size > array->bytes() - offset)
        return CUDA_ERROR_INVALID_VALUE;
    if (access == Access::Write)
        touch(*array);
    extents.push_back({&array->gpu->device.space, array->at + offset, size, array->gpu, nullptr});
    return CUDA_SUCCESS;
}

}  // namespace cuslice::fake
