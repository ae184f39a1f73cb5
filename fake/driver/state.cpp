// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/state.h"

namespace cuslice::fake {

Driver& driver() {
    static auto* one = new Driver;
    return *one;
}

}  // namespace cuslice::fake
