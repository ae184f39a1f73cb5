// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/transfer.h"

#include <algorithm>

#include "fake/driver/host_memory.h"
#include "fake/driver/submit.h"
#include "fake/driver/timing.h"
#include "fake/driver/work_fault.h"

namespace cuslice::fake {
namespace {

/// A value repeated to 4 bytes, as MemorySpace::fill takes it.
uint32_t repeated(uint32_t value, unsigned element) {
    if (element == 1)
        return (value & 0xff) * 0x01010101U;
    if (element == 2)
        return (value & 0xffff) * 0x00010001U;
    return value;
}

bool pageable(const Extents& extents) {
    return std::any_of(extents.begin(), extents.end(), [](const Extent& extent) {
        return extent.space == nullptr && !host_range_known(extent.at, extent.size);
    });
}

/// Reports the failure of a task to its context.
void told(CUcontext context, CUresult result) {
    if (result != CUDA_SUCCESS)
        work_failed(context, result);
}

/// A copy of the bytes as they are now, which lives as long as the task.
Task copy_staged(const Extents& to, const Extents& from, size_t bytes) {
    auto stage = std::make_shared<std::vector<unsigned char>>(bytes);
    const Extents staged{{nullptr, reinterpret_cast<Address>(stage->data()), bytes, nullptr, nullptr}};
    copy_extents(staged, from);
    return [to, staged, stage, context = current_handle] { told(context, copy_extents(to, staged)); };
}

}  // namespace

Task copy_task(Extents to, Extents from) {
    return [to = std::move(to), from = std::move(from), context = current_handle] {
        told(context, copy_extents(to, from));
    };
}

NodeWork copy_work(Task task, const Extents& to, const Extents& from, size_t rows) {
    NodeWork work{.type = CU_GRAPH_NODE_TYPE_MEMCPY, .task = std::move(task)};
    work.needs.work = copy_time(to, from, rows);
    return work;
}

bool returns_when_done(const Order& order, const Extents& to, const Extents& from) {
    if (!WorkQueue::late())
        return order.wait;
    // Between device memory nothing waits, whatever the function's name, and host memory that isn't page-locked can't
    // be left to the GPU.
    const bool to_host = on_host(to), from_host = on_host(from);
    if (!to_host && !from_host)
        return false;
    return order.wait || (to_host && from_host) || pageable(to) || pageable(from);
}

CUresult resolve_end(const End& end, size_t size, Access access, Extents& extents) {
    switch (end.side) {
        case Side::Device:
            return resolve_device(end.address, size, access, extents, end.gpu);
        case Side::Host:
            return resolve_host(reinterpret_cast<const void*>(end.address), size, extents);
        default:
            return resolve_any(end.address, size, access, extents, end.gpu);
    }
}

CUresult run_transfer(NodeWork work, const Order& order, const std::function<CUgraphNodeParams()>& describe) {
    CUSLICE_FIND_CURRENT(context);
    CUSLICE_FIND_STREAM(stream, order.stream, order.form);
    if (stream->capture != nullptr && describe)
        work.parameters = captured_work(describe()).parameters;
    CUSLICE_TRY(submit(*stream, std::move(work)));
    if (order.wait && stream->capture == nullptr)
        stream->queue->wait();
    return fault_of_work(*context);
}

static CUmemorytype type_of(Side side) {
    if (side == Side::Device)
        return CU_MEMORYTYPE_DEVICE;
    return side == Side::Host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
}

static CUgraphNodeParams describe_linear(const End& to, const End& from, size_t bytes) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = type_of(from.side);
    copy.srcHost = from.side == Side::Host ? reinterpret_cast<const void*>(from.address) : nullptr;
    copy.srcDevice = from.side == Side::Host ? 0 : from.address;
    copy.dstMemoryType = type_of(to.side);
    copy.dstHost = to.side == Side::Host ? reinterpret_cast<void*>(to.address) : nullptr;
    copy.dstDevice = to.side == Side::Host ? 0 : to.address;
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    return node_params(copy, current_handle);
}

CUresult copy_linear(const End& to, const End& from, size_t bytes, const Order& order) {
    CUSLICE_FIND_CURRENT(context);
    CUSLICE_FIND_STREAM(stream, order.stream, order.form);
    if (bytes == 0)
        return CUDA_SUCCESS;
    Extents source, target;
    CUSLICE_TRY(resolve_end(from, bytes, Access::Read, source));
    CUSLICE_TRY(resolve_end(to, bytes, Access::Write, target));
    // A copy from pageable memory has read it when it returns, and need not have written anything.
    if (WorkQueue::late() && !order.wait && stream->capture == nullptr && pageable(source) && !on_host(target))
        return run_transfer(copy_work(copy_staged(target, source, bytes), target, source), order);
    return run_transfer(copy_work(copy_task(target, source), target, source),
                        {order.stream, order.form, returns_when_done(order, target, source)},
                        [&] { return describe_linear(to, from, bytes); });
}

CUresult check_fill(const Fill& fill, CUcontext context, int gpu, CheckedFill& out) {
    size_t row = 0, all = 0;
    if (__builtin_mul_overflow(fill.width, size_t{fill.element}, &row))
        return CUDA_ERROR_INVALID_VALUE;
    if (fill.to % fill.element != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (fill.height > 1 && (fill.pitch < row || fill.pitch % fill.element != 0))
        return CUDA_ERROR_INVALID_VALUE;
    out.task = [] {};
    if (row == 0 || fill.height == 0)
        return CUDA_SUCCESS;
    if (__builtin_mul_overflow(fill.height - 1, fill.pitch, &all) || __builtin_add_overflow(all, row, &all))
        return CUDA_ERROR_INVALID_VALUE;
    if (fill.height == 1 || fill.pitch == row) {
        CUSLICE_TRY(resolve_device(fill.to, all, Access::Write, out.rows, gpu));
    } else {
        for (size_t y = 0; y < fill.height; y++) {
            CUSLICE_TRY(resolve_device(fill.to + y * fill.pitch, row, Access::Write, out.rows, gpu));
        }
    }
    const auto rows = std::make_shared<Extents>(out.rows);
    out.task = [rows, pattern = repeated(fill.value, fill.element), context] {
        told(context, fill_extents(*rows, pattern));
    };
    return CUDA_SUCCESS;
}

CUresult fill_rows(const Fill& fill, const Order& order) {
    CUSLICE_FIND_CURRENT(context);
    CheckedFill checked;
    CUSLICE_TRY(check_fill(fill, current_handle, accessing_gpu(), checked));
    const bool wait = checked.rows.empty() ? order.wait : returns_when_done(order, checked.rows, {});
    NodeWork work{.type = CU_GRAPH_NODE_TYPE_MEMSET, .task = std::move(checked.task)};
    work.needs.work = fill_time(checked.rows);
    return run_transfer(std::move(work), {order.stream, order.form, wait}, [&] {
        return node_params({fill.to, fill.pitch, fill.value, fill.element, fill.width, fill.height, current_handle});
    });
}

}  // namespace cuslice::fake
