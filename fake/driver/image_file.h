// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images in files.

#include <vector>

#include "fake/driver/cuda_api.h"

namespace cuslice::fake {

/// The whole file. CUDA_ERROR_FILE_NOT_FOUND if it can't be read.
CUresult read_image_file(const char* path, std::vector<unsigned char>& contents);

}  // namespace cuslice::fake
