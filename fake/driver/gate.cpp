// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/gate.h"

namespace cuslice::fake {

constinit std::atomic<unsigned> gate{kGateNotInitialised};

}  // namespace cuslice::fake
