// SPDX-License-Identifier: Apache-2.0
// Fills: 8, 16 and 32 bits, rows, older and newer forms, legacy and per-thread default stream.

#include "fake/driver/stream_pair.h"
#include "fake/driver/transfer.h"

using namespace cuslice::fake;

namespace {

/// Elements of `kBytes` each: the function's name has them in bits.
template <unsigned kBytes>
constexpr auto elements = [](Address to, unsigned value, size_t count, auto... stream) {
    return fill_rows({to, 0, value, kBytes, count, 1}, order_of(stream...));
};
template <unsigned kBytes>
constexpr auto rows = [](Address to, size_t pitch, unsigned value, size_t width, size_t height, auto... stream) {
    return fill_rows({to, pitch, value, kBytes, width, height}, order_of(stream...));
};

}  // namespace

CUSLICE_STREAM_FORMS(cuMemsetD8, _ptds, elements<1>, to, value, count)
CUSLICE_STREAM_PAIR(cuMemsetD8Async, elements<1>, to, value, count, stream)

CUSLICE_STREAM_FORMS(cuMemsetD2D8, _ptds, rows<1>, to, pitch, value, width, height)
CUSLICE_STREAM_PAIR(cuMemsetD2D8Async, rows<1>, to, pitch, value, width, height, stream)

CUSLICE_STREAM_FORMS(cuMemsetD16, _ptds, elements<2>, to, value, count)
CUSLICE_STREAM_PAIR(cuMemsetD16Async, elements<2>, to, value, count, stream)

CUSLICE_STREAM_FORMS(cuMemsetD2D16, _ptds, rows<2>, to, pitch, value, width, height)
CUSLICE_STREAM_PAIR(cuMemsetD2D16Async, rows<2>, to, pitch, value, width, height, stream)

CUSLICE_STREAM_FORMS(cuMemsetD32, _ptds, elements<4>, to, value, count)
CUSLICE_STREAM_PAIR(cuMemsetD32Async, elements<4>, to, value, count, stream)

CUSLICE_STREAM_FORMS(cuMemsetD2D32, _ptds, rows<4>, to, pitch, value, width, height)
CUSLICE_STREAM_PAIR(cuMemsetD2D32Async, rows<4>, to, pitch, value, width, height, stream)
