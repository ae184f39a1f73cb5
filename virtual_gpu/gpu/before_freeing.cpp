// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/before_freeing.h"

namespace cuslice {

constinit std::atomic<void (*)()> before_freeing{nullptr};

}  // namespace cuslice
