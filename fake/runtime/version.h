// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cuslice::fake {

/// CUDA version of this runtime, as cudaRuntimeGetVersion says it: 11080, 12090 or 13000.
int runtime_version();

}  // namespace cuslice::fake
