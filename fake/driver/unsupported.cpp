// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/unsupported.h"

#include "fake/driver/api_prologue.h"

namespace cuslice::fake {

int log_unsupported(const char* name, std::atomic<bool>& said) { return unsupported(name, said); }

}  // namespace cuslice::fake
