// SPDX-License-Identifier: Apache-2.0
// Memsets of device memory, in all forms with 64-bit addresses.
#include "shim/driver/bounds.h"

namespace cuslice {

namespace {

// `kBytes`: size of an element, which the function's name gives in bits.
template <unsigned kBytes>
constexpr auto elements = [](CUdeviceptr to, auto, size_t count, auto...) { return in_bounds(to, count, kBytes); };
template <unsigned kBytes>
constexpr auto rows = [](CUdeviceptr to, size_t pitch, auto, size_t width, size_t height, auto...) {
    return rows_in_bounds(to, pitch, width, kBytes, height);
};

}  // namespace

CUSLICE_CHECKED(cuMemsetD8_v2, elements<1>)
CUSLICE_CHECKED(cuMemsetD8_v2_ptds, elements<1>)
CUSLICE_CHECKED(cuMemsetD8Async, elements<1>)
CUSLICE_CHECKED(cuMemsetD8Async_ptsz, elements<1>)
CUSLICE_CHECKED(cuMemsetD16_v2, elements<2>)
CUSLICE_CHECKED(cuMemsetD16_v2_ptds, elements<2>)
CUSLICE_CHECKED(cuMemsetD16Async, elements<2>)
CUSLICE_CHECKED(cuMemsetD16Async_ptsz, elements<2>)
CUSLICE_CHECKED(cuMemsetD32_v2, elements<4>)
CUSLICE_CHECKED(cuMemsetD32_v2_ptds, elements<4>)
CUSLICE_CHECKED(cuMemsetD32Async, elements<4>)
CUSLICE_CHECKED(cuMemsetD32Async_ptsz, elements<4>)

CUSLICE_CHECKED(cuMemsetD2D8_v2, rows<1>)
CUSLICE_CHECKED(cuMemsetD2D8_v2_ptds, rows<1>)
CUSLICE_CHECKED(cuMemsetD2D8Async, rows<1>)
CUSLICE_CHECKED(cuMemsetD2D8Async_ptsz, rows<1>)
CUSLICE_CHECKED(cuMemsetD2D16_v2, rows<2>)
CUSLICE_CHECKED(cuMemsetD2D16_v2_ptds, rows<2>)
CUSLICE_CHECKED(cuMemsetD2D16Async, rows<2>)
CUSLICE_CHECKED(cuMemsetD2D16Async_ptsz, rows<2>)
CUSLICE_CHECKED(cuMemsetD2D32_v2, rows<4>)
CUSLICE_CHECKED(cuMemsetD2D32_v2_ptds, rows<4>)
CUSLICE_CHECKED(cuMemsetD2D32Async, rows<4>)
CUSLICE_CHECKED(cuMemsetD2D32Async_ptsz, rows<4>)

}  // namespace cuslice
