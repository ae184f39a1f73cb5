// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/unrecorded_frees.h"

namespace cuslice {

constinit std::atomic<bool> UnrecordedFrees::any_watched_{false};

}  // namespace cuslice
