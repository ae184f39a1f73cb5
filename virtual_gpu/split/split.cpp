// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/split/split.h"

namespace cuslice {

constinit Split the_split;

int Split::first_of(CUdevice physical) const {
    for (int i = 0; i < count(); i++)
        if (devices_[i].physical == physical)
            return i;
    return -1;
}

}  // namespace cuslice
