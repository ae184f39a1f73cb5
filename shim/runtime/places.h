// SPDX-License-Identifier: Apache-2.0
#pragma once
// Owners of pointers and streams, and the placement of managed memory.
#include <initializer_list>

#include "shim/runtime/runtime_shim.h"

namespace cuslice::runtime {

template <int kVersion>
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    const cudaError_t result = CUSLICE_NEXT(cudaPointerGetAttributes)(attributes, pointer);
    const SplitView* split = view();
    if (result != cudaSuccess || !split || attributes->device < 0)
        return result;
    int ordinal = -1;
    const CUresult known = cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address_of(pointer));
    attributes->device = known == CUDA_SUCCESS && ordinal >= 0 ? ordinal : split->shown(attributes->device);
    return result;
}

template <int kVersion>
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
    const cudaError_t result = CUSLICE_NEXT(cudaStreamGetDevice)(stream, device);
    return result == cudaSuccess && view() ? as_runtime(cuStreamGetDevice(stream, device)) : result;
}

template <int kVersion>
cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int* device) {
    const cudaError_t result = CUSLICE_NEXT(cudaStreamGetDevice_ptsz)(stream, device);
    return result == cudaSuccess && view() ? as_runtime(cuStreamGetDevice_ptsz(stream, device)) : result;
}

// 11 and 12 name a GPU by its ordinal, or the host; the _v2 forms of 12, and 13, have a location.
#define CUSLICE_BY_ORDINAL(version)                                                                                \
    inline cudaError_t cudaMemAdvise_##version(const void* pointer, size_t bytes, cudaMemoryAdvise advice,         \
                                               int device) {                                                       \
        return CUSLICE_NEXT_FORM(cudaMemAdvise, version)(pointer, bytes, advice, physical_or_host(device));        \
    }                                                                                                              \
    inline cudaError_t cudaMemPrefetchAsync_##version(const void* pointer, size_t bytes, int device,               \
                                                      cudaStream_t stream) {                                       \
        return CUSLICE_NEXT_FORM(cudaMemPrefetchAsync, version)(pointer, bytes, physical_or_host(device), stream); \
    }                                                                                                              \
    inline cudaError_t cudaMemPrefetchAsync_ptsz_##version(const void* pointer, size_t bytes, int device,          \
                                                           cudaStream_t stream) {                                  \
        return CUSLICE_NEXT_FORM(cudaMemPrefetchAsync_ptsz, version)(pointer, bytes, physical_or_host(device),     \
                                                                     stream);                                      \
    }
CUSLICE_BY_ORDINAL(11)
CUSLICE_BY_ORDINAL(12)
#undef CUSLICE_BY_ORDINAL

inline cudaError_t cudaMemAdvise_13(const void* pointer, size_t bytes, cudaMemoryAdvise advice, cudaMemLocation place) {
    return CUSLICE_NEXT_FORM(cudaMemAdvise, 13)(pointer, bytes, advice, physical(place));
}
template <int kVersion>
cudaError_t cudaMemAdvise_v2(const void* pointer, size_t bytes, cudaMemoryAdvise advice, cudaMemLocation place) {
    return CUSLICE_NEXT(cudaMemAdvise_v2)(pointer, bytes, advice, physical(place));
}

inline cudaError_t cudaMemPrefetchAsync_13(const void* pointer, size_t bytes, cudaMemLocation place, unsigned flags,
                                           cudaStream_t stream) {
    return CUSLICE_NEXT_FORM(cudaMemPrefetchAsync, 13)(pointer, bytes, physical(place), flags, stream);
}
inline cudaError_t cudaMemPrefetchAsync_ptsz_13(const void* pointer, size_t bytes, cudaMemLocation place,
                                                unsigned flags, cudaStream_t stream) {
    return CUSLICE_NEXT_FORM(cudaMemPrefetchAsync_ptsz, 13)(pointer, bytes, physical(place), flags, stream);
}
template <int kVersion>
cudaError_t cudaMemPrefetchAsync_v2(const void* pointer, size_t bytes, cudaMemLocation place, unsigned flags,
                                    cudaStream_t stream) {
    return CUSLICE_NEXT(cudaMemPrefetchAsync_v2)(pointer, bytes, physical(place), flags, stream);
}
template <int kVersion>
cudaError_t cudaMemPrefetchAsync_v2_ptsz(const void* pointer, size_t bytes, cudaMemLocation place, unsigned flags,
                                         cudaStream_t stream) {
    return CUSLICE_NEXT(cudaMemPrefetchAsync_v2_ptsz)(pointer, bytes, physical(place), flags, stream);
}

inline void translate_place(cudaMemLocation& place) { place = physical(place); }
inline void translate_hints(cudaMemcpyAttributes& how) {
    how.srcLocHint = physical(how.srcLocHint);
    how.dstLocHint = physical(how.dstLocHint);
}
inline void translate_box(cudaMemcpy3DBatchOp& box) {
    for (cudaMemcpy3DOperand* operand : {&box.src, &box.dst})
        if (operand->type == cudaMemcpyOperandTypePointer)
            operand->op.ptr.locHint = physical(operand->op.ptr.locHint);
}

#define CUSLICE_PREFETCH_BATCH(symbol)                                                                         \
    template <int kVersion>                                                                                    \
    cudaError_t symbol(void** pointers, size_t* sizes, size_t count, cudaMemLocation* places, size_t* indices, \
                       size_t place_count, unsigned long long flags, cudaStream_t stream) {                    \
        return with_places(places, place_count, translate_place, [&](cudaMemLocation* real) {                  \
            return CUSLICE_NEXT(symbol)(pointers, sizes, count, real, indices, place_count, flags, stream);    \
        });                                                                                                    \
    }
CUSLICE_PREFETCH_BATCH(cudaMemPrefetchBatchAsync)
CUSLICE_PREFETCH_BATCH(cudaMemPrefetchBatchAsync_ptsz)
CUSLICE_PREFETCH_BATCH(cudaMemDiscardAndPrefetchBatchAsync)
CUSLICE_PREFETCH_BATCH(cudaMemDiscardAndPrefetchBatchAsync_ptsz)
#undef CUSLICE_PREFETCH_BATCH

#define CUSLICE_COPY_BATCHES(symbol)                                                                                   \
    inline cudaError_t symbol##_12(void** to, void** from, size_t* sizes, size_t count, cudaMemcpyAttributes* how,     \
                                   size_t* indices, size_t how_many, size_t* failed, cudaStream_t stream) {            \
        return with_places(how, how_many, translate_hints, [&](cudaMemcpyAttributes* real) {                           \
            return CUSLICE_NEXT_FORM(symbol, 12)(to, from, sizes, count, real, indices, how_many, failed, stream);     \
        });                                                                                                            \
    }                                                                                                                  \
    inline cudaError_t symbol##_13(void* const* to, const void* const* from, const size_t* sizes, size_t count,        \
                                   cudaMemcpyAttributes* how, size_t* indices, size_t how_many, cudaStream_t stream) { \
        return with_places(how, how_many, translate_hints, [&](cudaMemcpyAttributes* real) {                           \
            return CUSLICE_NEXT_FORM(symbol, 13)(to, from, sizes, count, real, indices, how_many, stream);             \
        });                                                                                                            \
    }
CUSLICE_COPY_BATCHES(cudaMemcpyBatchAsync)
CUSLICE_COPY_BATCHES(cudaMemcpyBatchAsync_ptsz)
#undef CUSLICE_COPY_BATCHES

#define CUSLICE_BOX_BATCHES(symbol)                                                                                    \
    inline cudaError_t symbol##_12(size_t count, cudaMemcpy3DBatchOp* boxes, size_t* failed, unsigned long long flags, \
                                   cudaStream_t stream) {                                                              \
        return with_places(boxes, count, translate_box, [&](cudaMemcpy3DBatchOp* real) {                               \
            return CUSLICE_NEXT_FORM(symbol, 12)(count, real, failed, flags, stream);                                  \
        });                                                                                                            \
    }                                                                                                                  \
    inline cudaError_t symbol##_13(size_t count, cudaMemcpy3DBatchOp* boxes, unsigned long long flags,                 \
                                   cudaStream_t stream) {                                                              \
        return with_places(boxes, count, translate_box, [&](cudaMemcpy3DBatchOp* real) {                               \
            return CUSLICE_NEXT_FORM(symbol, 13)(count, real, flags, stream);                                          \
        });                                                                                                            \
    }
CUSLICE_BOX_BATCHES(cudaMemcpy3DBatchAsync)
CUSLICE_BOX_BATCHES(cudaMemcpy3DBatchAsync_ptsz)
#undef CUSLICE_BOX_BATCHES

// The numbers of the attributes are the driver's.
template <int kVersion>
cudaError_t cudaMemRangeGetAttribute(void* data, size_t size, cudaMemRangeAttribute attribute, const void* pointer,
                                     size_t bytes) {
    const cudaError_t result = CUSLICE_NEXT(cudaMemRangeGetAttribute)(data, size, attribute, pointer, bytes);
    if (result != cudaSuccess || !view())
        return result;
    return as_runtime(
        cuMemRangeGetAttribute(data, size, static_cast<CUmem_range_attribute>(attribute), address_of(pointer), bytes));
}

template <int kVersion>
cudaError_t cudaMemRangeGetAttributes(void** data, size_t* sizes, cudaMemRangeAttribute* attributes, size_t count,
                                      const void* pointer, size_t bytes) {
    const cudaError_t result = CUSLICE_NEXT(cudaMemRangeGetAttributes)(data, sizes, attributes, count, pointer, bytes);
    if (result != cudaSuccess || !view())
        return result;
    return as_runtime(cuMemRangeGetAttributes(data, sizes, reinterpret_cast<CUmem_range_attribute*>(attributes), count,
                                              address_of(pointer), bytes));
}

}  // namespace cuslice::runtime
