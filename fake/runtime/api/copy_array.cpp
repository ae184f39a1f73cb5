// SPDX-License-Identifier: Apache-2.0
// Copies of a run of bytes from and to arrays: from a position on to the end of its row, and on in the next one. Built
// twice: legacy and per-thread default stream (_ptsz, _ptds).

#include <algorithm>

#include "fake/runtime/array_format.h"
#include "fake/runtime/copy.h"

using namespace cuslice::fake;

namespace {

struct Rows {
    size_t bytes = 0;  ///< of each
    size_t count = 0;
};

/// The rows of an array. The context is current.
cudaError_t rows_of(cudaArray_const_t array, Rows* rows) {
    CUDA_ARRAY3D_DESCRIPTOR found{};
    size_t element = 0;
    auto* const handle = reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array));
    CUSLICE_TRY(as_error(CU(cuArray3DGetDescriptor, 3020)(&found, handle)));
    CUSLICE_TRY(element_bytes(const_cast<cudaArray_t>(array), &element));
    *rows = {found.Width * element, std::max<size_t>(found.Height, 1)};
    return cudaSuccess;
}

/// A place in an array, in bytes and rows.
struct Place {
    size_t x, y;

    bool has(size_t count, const Rows& rows) const {
        return x < rows.bytes && y < rows.count && count <= (rows.count - y) * rows.bytes - x;
    }
    void advance(size_t bytes, const Rows& rows) {
        x += bytes;
        y += x / rows.bytes;
        x %= rows.bytes;
    }
};

/// Cuts a run of bytes into boxes of whole rows, with a part of one at either end. `copy` gets the place in the array,
/// how far the run has got, and the size of the box.
template <class Copy>
cudaError_t along_rows(cudaArray_const_t array, size_t x, size_t y, size_t count, cudaMemcpyKind kind, Copy copy) {
    if (!is_direction(kind))
        return record(cudaErrorInvalidMemcpyDirection);
    return in_context([&] {
        Rows rows;
        CUSLICE_TRY(rows_of(array, &rows));
        const size_t row = rows.bytes;
        // All of it before the first box: a run that doesn't fit leaves the array as it is.
        if (!Place{x, y}.has(count, rows))
            return cudaErrorInvalidValue;
        for (size_t done = 0; done < count;) {
            const size_t left = count - done;
            const size_t width = x != 0 || left < row ? std::min(left, row - x) : row;
            const size_t height = width == row ? left / row : 1;
            CUSLICE_TRY(copy(x, y, done, width, height));
            done += width * height;
            y += height;
            x = 0;
        }
        return cudaSuccess;
    });
}

}  // namespace

cudaError_t cudaMemcpyToArray(cudaArray_t destination, size_t x, size_t y, const void* source, size_t count,
                              cudaMemcpyKind kind) {
    return along_rows(destination, x, y, count, kind,
                      [&](size_t at, size_t row, size_t done, size_t width, size_t height) {
                          return cudaMemcpy2DToArray(destination, at, row, static_cast<const char*>(source) + done,
                                                     width, width, height, kind);
                      });
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t destination, size_t x, size_t y, const void* source, size_t count,
                                   cudaMemcpyKind kind, cudaStream_t stream) {
    return along_rows(destination, x, y, count, kind,
                      [&](size_t at, size_t row, size_t done, size_t width, size_t height) {
                          return cudaMemcpy2DToArrayAsync(destination, at, row, static_cast<const char*>(source) + done,
                                                          width, width, height, kind, stream);
                      });
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t destination, size_t to_x, size_t to_y, cudaArray_const_t source,
                                   size_t from_x, size_t from_y, size_t count, cudaMemcpyKind kind) {
    if (!is_direction(kind))
        return record(cudaErrorInvalidMemcpyDirection);
    return in_context([&] {
        Rows to_rows, from_rows;
        Place to{to_x, to_y}, from{from_x, from_y};
        CUSLICE_TRY(rows_of(destination, &to_rows));
        CUSLICE_TRY(rows_of(source, &from_rows));
        if (!to.has(count, to_rows) || !from.has(count, from_rows))
            return cudaErrorInvalidValue;
        // A piece lies in one row of either.
        for (size_t done = 0; done < count;) {
            const size_t piece = std::min({to_rows.bytes - to.x, from_rows.bytes - from.x, count - done});
            CUSLICE_TRY(cudaMemcpy2DArrayToArray(destination, to.x, to.y, source, from.x, from.y, piece, 1, kind));
            to.advance(piece, to_rows);
            from.advance(piece, from_rows);
            done += piece;
        }
        return cudaSuccess;
    });
}

cudaError_t cudaMemcpyFromArray(void* destination, cudaArray_const_t source, size_t x, size_t y, size_t count,
                                cudaMemcpyKind kind) {
    return along_rows(source, x, y, count, kind, [&](size_t at, size_t row, size_t done, size_t width, size_t height) {
        return cudaMemcpy2DFromArray(static_cast<char*>(destination) + done, width, source, at, row, width, height,
                                     kind);
    });
}

cudaError_t cudaMemcpyFromArrayAsync(void* destination, cudaArray_const_t source, size_t x, size_t y, size_t count,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
    return along_rows(source, x, y, count, kind, [&](size_t at, size_t row, size_t done, size_t width, size_t height) {
        return cudaMemcpy2DFromArrayAsync(static_cast<char*>(destination) + done, width, source, at, row, width, height,
                                          kind, stream);
    });
}
