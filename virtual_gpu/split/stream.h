// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "virtual_gpu/driver/cuda_api.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

// The virtual GPU that a stream belongs to; of the default streams, and of one that others have made, the current one.
// -1 if there is none.
int device_of(CUstream stream);

// Priority of the streams that this thread makes without naming one: the current partition's, if it has one.
std::optional<int> current_priority();

// Checks that the GPU has the priority that one of its partitions is to have. Only a context of the GPU tells:
// `real`, which has to be alive. If the GPU lacks the priority, says so (Split::on_bad_priority), and returns
// CUDA_ERROR_INVALID_VALUE.
CUresult check_priority(const Split::Device& part, CUcontext real);

}  // namespace cuslice
