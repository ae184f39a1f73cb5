// SPDX-License-Identifier: Apache-2.0
#pragma once
// Formats of arrays and textures.

#include <cstdint>

#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

/// Bytes per channel; 0 for formats that array_formats.def lacks.
constexpr uint64_t channel_bytes(CUarray_format format) {
    switch (format) {
#define CUSLICE_ARRAY_FORMAT(format, kind, bits) \
    case CU_AD_FORMAT_##format:                  \
        return bits / 8;
#include "virtual_gpu/driver/array_formats.def"
        default:
            return 0;
    }
}

}  // namespace cuslice
