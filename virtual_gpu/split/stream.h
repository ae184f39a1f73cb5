#pragma once
#include <optional>

#include "virtual_gpu/driver/cuda_api.h"
#include "virtual_gpu/split/split.h"

namespace cuslice {

// The virtual GPU that a stream belongs to; of the default streams, and of one that others have made, the current one.
// -1 if there is none.
int device_of(CUstream stream);

// What the streams get that this thread makes without naming a priority: the current part's, if it has one.
std::optional<int> current_priority();

// Whether the GPU has the priority that one of its parts is to have, which only a context of it tells: `real`, which
// lives. If not, says so (Split::on_bad_priority), and answers CUDA_ERROR_INVALID_VALUE.
CUresult check_priority(const Split::Device& part, CUcontext real);

}  // namespace cuslice
