// SPDX-License-Identifier: Apache-2.0
// Copies of a run of bytes, to and from symbols too. Built twice: legacy and per-thread default stream (_ptsz, _ptds).

#include "fake/runtime/copy.h"
#include "fake/runtime/forward.h"
#include "fake/runtime/modules.h"

using namespace cuslice::fake;

namespace {

CUresult run(void* destination, const void* source, size_t count, cudaMemcpyKind kind) {
    switch (kind) {
        case cudaMemcpyHostToDevice:
            return CU_STREAM(cuMemcpyHtoD, 3020)(address(destination), source, count);
        case cudaMemcpyDeviceToHost:
            return CU_STREAM(cuMemcpyDtoH, 3020)(destination, address(source), count);
        case cudaMemcpyDeviceToDevice:
            return CU_STREAM(cuMemcpyDtoD, 3020)(address(destination), address(source), count);
        default:  // host to host, or by the addresses
            return CU_STREAM(cuMemcpy, 4000)(address(destination), address(source), count);
    }
}

CUresult run(void* destination, const void* source, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
    switch (kind) {
        case cudaMemcpyHostToDevice:
            return CU_STREAM(cuMemcpyHtoDAsync, 3020)(address(destination), source, count, stream);
        case cudaMemcpyDeviceToHost:
            return CU_STREAM(cuMemcpyDtoHAsync, 3020)(destination, address(source), count, stream);
        case cudaMemcpyDeviceToDevice:
            return CU_STREAM(cuMemcpyDtoDAsync, 3020)(address(destination), address(source), count, stream);
        default:
            return CU_STREAM(cuMemcpyAsync, 4000)(address(destination), address(source), count, stream);
    }
}

/// Finds `count` bytes at `offset` in a symbol, and hands their address to `copy`.
template <class Copy>
cudaError_t with_symbol(const void* symbol, size_t offset, size_t count, bool allowed, Copy copy) {
    if (!allowed)
        return record(cudaErrorInvalidMemcpyDirection);
    return in_context([&] {
        CUdeviceptr base = 0;
        size_t bytes = 0;
        CUSLICE_TRY(address_of(symbol, &base, &bytes));
        if (offset > bytes || count > bytes - offset)
            return cudaErrorInvalidValue;
        return count == 0 ? cudaSuccess : as_error(copy(reinterpret_cast<void*>(base + offset)));
    });
}

constexpr bool may_go_to_symbol(cudaMemcpyKind kind) {
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}
constexpr bool may_come_from_symbol(cudaMemcpyKind kind) {
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

// Each with or without a stream at the end.

template <class... Stream>
cudaError_t copy(void* to, const void* from, size_t count, cudaMemcpyKind kind, Stream... stream) {
    if (!is_direction(kind))
        return record(cudaErrorInvalidMemcpyDirection);
    return in_context([&] { return count == 0 ? CUDA_SUCCESS : run(to, from, count, kind, stream...); });
}

template <class... Stream>
cudaError_t to_symbol(const void* symbol, const void* from, size_t count, size_t offset, cudaMemcpyKind kind,
                      Stream... stream) {
    return with_symbol(symbol, offset, count, may_go_to_symbol(kind),
                       [&](void* place) { return run(place, from, count, kind, stream...); });
}

template <class... Stream>
cudaError_t from_symbol(void* to, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind,
                        Stream... stream) {
    return with_symbol(symbol, offset, count, may_come_from_symbol(kind),
                       [&](void* place) { return run(to, place, count, kind, stream...); });
}

}  // namespace

CUSLICE_CALLING(cudaMemcpy, copy, to, from, count, kind)
CUSLICE_CALLING(cudaMemcpyAsync, copy, to, from, count, kind, stream)
CUSLICE_CALLING(cudaMemcpyToSymbol, to_symbol, symbol, from, count, offset, kind)
CUSLICE_CALLING(cudaMemcpyToSymbolAsync, to_symbol, symbol, from, count, offset, kind, stream)
CUSLICE_CALLING(cudaMemcpyFromSymbol, from_symbol, to, symbol, count, offset, kind)
CUSLICE_CALLING(cudaMemcpyFromSymbolAsync, from_symbol, to, symbol, count, offset, kind, stream)
